; ModuleID = 'kernel'
source_filename = "kernel"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nounwind
define void @tw_d36b54047c763139(ptr %0, ptr %1, i32 %2, i32 %3) #0 {
entry:
  %4 = sext i32 %2 to i64
  %5 = sext i32 %3 to i64
  %6 = getelementptr inbounds i64, ptr %0, i64 0
  %7 = load ptr, ptr %6, align 8
  %8 = getelementptr inbounds i64, ptr %0, i64 1
  %9 = load ptr, ptr %8, align 8
  %10 = getelementptr inbounds i64, ptr %0, i64 2
  %11 = load ptr, ptr %10, align 8
  %12 = getelementptr inbounds i64, ptr %0, i64 3
  %13 = load i64, ptr %12, align 8
  call void @body_0(ptr %0, ptr %1, i64 %4, i64 %5, ptr %7, ptr %9, ptr %11, i64 %13)
  ret void
}

; Function Attrs: noinline nounwind
define private void @body_0(ptr %0, ptr noalias %1, i64 %2, i64 %3, ptr noalias nocapture readonly %buffer0, ptr noalias nocapture readonly %buffer1, ptr noalias nocapture %buffer2, i64 %4) #1 {
entry:
  %accumulator = alloca float, align 64
  %5 = mul nsw i64 4, %4
  %6 = udiv i64 %5, %3
  %7 = urem i64 %5, %3
  %8 = icmp slt i64 %2, %7
  %9 = select i1 %8, i64 %2, i64 %7
  %10 = mul nsw i64 %2, %6
  %11 = add nsw i64 %10, %9
  %12 = icmp slt i64 %2, %7
  %13 = zext i1 %12 to i64
  %14 = add nsw i64 %11, %6
  %15 = add nsw i64 %14, %13
  %16 = icmp slt i64 %11, %15
  br i1 %16, label %point.preheader, label %point.after

point.preheader:                                  ; preds = %entry
  br label %point

point:                                            ; preds = %i2.after, %point.preheader
  %point.i = phi i64 [ %11, %point.preheader ], [ %62, %i2.after ]
  %17 = udiv i64 %point.i, %4
  %18 = mul nsw i64 %17, %4
  %19 = sub nsw i64 %point.i, %18
  store float 0.000000e+00, ptr %accumulator, align 4
  br i1 true, label %i2.preheader, label %i2.after

point.exit:                                       ; preds = %i2.after
  br label %point.after

point.after:                                      ; preds = %point.exit, %entry
  ret void

i2.preheader:                                     ; preds = %point
  br label %i2

i2:                                               ; preds = %i2, %i2.preheader
  %i2.i = phi i64 [ 0, %i2.preheader ], [ %42, %i2 ]
  %20 = mul nsw i64 %17, 16
  %21 = add nsw i64 0, %20
  %22 = mul nsw i64 %i2.i, 1
  %23 = add nsw i64 %21, %22
  %24 = getelementptr i16, ptr %buffer0, i64 %23
  %25 = load i16, ptr %24, align 2
  %26 = zext i16 %25 to i32
  %27 = shl i32 %26, 16
  %28 = bitcast i32 %27 to float
  %29 = mul nsw i64 1, %4
  %30 = mul nsw i64 %i2.i, %29
  %31 = add nsw i64 0, %30
  %32 = mul nsw i64 %19, 1
  %33 = add nsw i64 %31, %32
  %34 = getelementptr i16, ptr %buffer1, i64 %33
  %35 = load i16, ptr %34, align 2
  %36 = zext i16 %35 to i32
  %37 = shl i32 %36, 16
  %38 = bitcast i32 %37 to float
  %39 = fmul contract float %28, %38
  %40 = load float, ptr %accumulator, align 4
  %41 = fadd contract float %40, %39
  store float %41, ptr %accumulator, align 4
  %42 = add nsw i64 %i2.i, 1
  %43 = icmp slt i64 %42, 16
  br i1 %43, label %i2, label %i2.exit, !llvm.loop !0

i2.exit:                                          ; preds = %i2
  br label %i2.after

i2.after:                                         ; preds = %i2.exit, %point
  %44 = load float, ptr %accumulator, align 4
  %45 = mul nsw i64 1, %4
  %46 = mul nsw i64 %17, %45
  %47 = add nsw i64 0, %46
  %48 = mul nsw i64 %19, 1
  %49 = add nsw i64 %47, %48
  %50 = bitcast float %44 to i32
  %51 = lshr i32 %50, 16
  %52 = and i32 %51, 1
  %53 = add i32 %50, 32767
  %54 = add i32 %53, %52
  %55 = lshr i32 %54, 16
  %56 = fcmp contract uno float %44, %44
  %57 = lshr i32 %50, 16
  %58 = or i32 %57, 64
  %59 = select i1 %56, i32 %58, i32 %55
  %60 = trunc i32 %59 to i16
  %61 = getelementptr i16, ptr %buffer2, i64 %49
  store i16 %60, ptr %61, align 2
  %62 = add nsw i64 %point.i, 1
  %63 = icmp slt i64 %62, %15
  br i1 %63, label %point, label %point.exit, !llvm.loop !2
}

attributes #0 = { nounwind "min-legal-vector-width"="256" "prefer-vector-width"="256" "target-cpu"="x86-64-v3" "target-features"="+avx,+avx2,+f16c,+fma" }
attributes #1 = { noinline nounwind "min-legal-vector-width"="256" "prefer-vector-width"="256" "target-cpu"="x86-64-v3" "target-features"="+avx,+avx2,+f16c,+fma" }

!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.disable"}
!2 = distinct !{!2, !1}
