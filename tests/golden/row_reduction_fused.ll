; ModuleID = 'kernel'
source_filename = "kernel"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nounwind
define void @tw_72a4185a4c4272ca(ptr %0, ptr %1, i32 %2, i32 %3) #0 {
entry:
  %4 = sext i32 %2 to i64
  %5 = sext i32 %3 to i64
  %6 = getelementptr inbounds i64, ptr %0, i64 0
  %7 = load ptr, ptr %6, align 8
  %8 = getelementptr inbounds i64, ptr %0, i64 1
  %9 = load ptr, ptr %8, align 8
  call void @body_0(ptr %0, ptr %1, i64 %4, i64 %5, ptr %7, ptr %9)
  ret void
}

; Function Attrs: noinline nounwind
define private void @body_0(ptr %0, ptr noalias %1, i64 %2, i64 %3, ptr noalias nocapture readonly %buffer0, ptr noalias nocapture %buffer1) #1 {
entry:
  %accumulator1 = alloca float, align 64
  %accumulator = alloca <8 x float>, align 64
  %4 = udiv i64 10, %3
  %5 = urem i64 10, %3
  %6 = icmp slt i64 %2, %5
  %7 = select i1 %6, i64 %2, i64 %5
  %8 = mul nsw i64 %2, %4
  %9 = add nsw i64 %8, %7
  %10 = icmp slt i64 %2, %5
  %11 = zext i1 %10 to i64
  %12 = add nsw i64 %9, %4
  %13 = add nsw i64 %12, %11
  %14 = icmp slt i64 %9, %13
  br i1 %14, label %row.preheader, label %row.after

row.preheader:                                    ; preds = %entry
  br label %row

row:                                              ; preds = %vector.after, %row.preheader
  %row.i = phi i64 [ %9, %row.preheader ], [ %48, %vector.after ]
  store <8 x float> zeroinitializer, ptr %accumulator, align 32
  store <8 x float> zeroinitializer, ptr %accumulator, align 32
  store float 0.000000e+00, ptr %accumulator1, align 4
  br i1 true, label %vector.preheader, label %vector.after

row.exit:                                         ; preds = %vector.after
  br label %row.after

row.after:                                        ; preds = %row.exit, %entry
  ret void

vector.preheader:                                 ; preds = %row
  br label %vector

vector:                                           ; preds = %vector, %vector.preheader
  %vector.i = phi i64 [ 0, %vector.preheader ], [ %30, %vector ]
  %15 = mul nsw i64 %row.i, 40
  %16 = add nsw i64 0, %15
  %17 = mul nsw i64 %vector.i, 1
  %18 = add nsw i64 %16, %17
  %19 = getelementptr float, ptr %buffer0, i64 %18
  %20 = load <8 x float>, ptr %19, align 4
  %21 = mul nsw i64 %row.i, 40
  %22 = add nsw i64 0, %21
  %23 = mul nsw i64 %vector.i, 1
  %24 = add nsw i64 %22, %23
  %25 = getelementptr float, ptr %buffer0, i64 %24
  %26 = load <8 x float>, ptr %25, align 4
  %27 = fmul contract <8 x float> %20, %26
  %28 = load <8 x float>, ptr %accumulator, align 32
  %29 = fadd contract <8 x float> %28, %27
  store <8 x float> %29, ptr %accumulator, align 32
  %30 = add nsw i64 %vector.i, 8
  %31 = icmp slt i64 %30, 40
  br i1 %31, label %vector, label %vector.exit, !llvm.loop !0

vector.exit:                                      ; preds = %vector
  br label %vector.after

vector.after:                                     ; preds = %vector.exit, %row
  %32 = load float, ptr %accumulator1, align 4
  %33 = load <8 x float>, ptr %accumulator, align 32
  %34 = shufflevector <8 x float> %33, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %35 = shufflevector <8 x float> %33, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %36 = fadd contract <4 x float> %35, %34
  %37 = shufflevector <4 x float> %36, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %38 = shufflevector <4 x float> %36, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %39 = fadd contract <2 x float> %38, %37
  %40 = shufflevector <2 x float> %39, <2 x float> poison, <1 x i32> <i32 1>
  %41 = shufflevector <2 x float> %39, <2 x float> poison, <1 x i32> zeroinitializer
  %42 = fadd contract <1 x float> %41, %40
  %43 = extractelement <1 x float> %42, i64 0
  %44 = fadd contract float %32, %43
  %45 = mul nsw i64 %row.i, 1
  %46 = add nsw i64 0, %45
  %47 = getelementptr float, ptr %buffer1, i64 %46
  store float %44, ptr %47, align 4
  %48 = add nsw i64 %row.i, 1
  %49 = icmp slt i64 %48, %13
  br i1 %49, label %row, label %row.exit, !llvm.loop !2
}

attributes #0 = { nounwind "min-legal-vector-width"="256" "prefer-vector-width"="256" "target-cpu"="x86-64-v3" "target-features"="+avx,+avx2,+f16c,+fma" }
attributes #1 = { noinline nounwind "min-legal-vector-width"="256" "prefer-vector-width"="256" "target-cpu"="x86-64-v3" "target-features"="+avx,+avx2,+f16c,+fma" }

!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.disable"}
!2 = distinct !{!2, !1}
