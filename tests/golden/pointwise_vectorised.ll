; ModuleID = 'kernel'
source_filename = "kernel"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nounwind
define void @tw_05e39acb9647dc0c(ptr %0, ptr %1, i32 %2, i32 %3) #0 {
entry:
  %4 = sext i32 %2 to i64
  %5 = sext i32 %3 to i64
  %6 = getelementptr inbounds i64, ptr %0, i64 0
  %7 = load ptr, ptr %6, align 8
  %8 = getelementptr inbounds i64, ptr %0, i64 1
  %9 = load ptr, ptr %8, align 8
  %10 = getelementptr inbounds i64, ptr %0, i64 2
  %11 = load i64, ptr %10, align 8
  call void @body_0(ptr %0, ptr %1, i64 %4, i64 %5, ptr %7, ptr %9, i64 %11)
  ret void
}

; Function Attrs: noinline nounwind
define private void @body_0(ptr %0, ptr noalias %1, i64 %2, i64 %3, ptr noalias nocapture readonly %buffer0, ptr noalias nocapture %buffer1, i64 %4) #1 {
entry:
  %5 = mul nsw i64 1, %4
  %6 = add nsw i64 %5, 255
  %7 = udiv i64 %6, 256
  %8 = mul nsw i64 %7, 1
  %9 = udiv i64 %8, %3
  %10 = urem i64 %8, %3
  %11 = icmp slt i64 %2, %10
  %12 = select i1 %11, i64 %2, i64 %10
  %13 = mul nsw i64 %2, %9
  %14 = add nsw i64 %13, %12
  %15 = icmp slt i64 %2, %10
  %16 = zext i1 %15 to i64
  %17 = add nsw i64 %14, %9
  %18 = add nsw i64 %17, %16
  %19 = icmp slt i64 %14, %18
  br i1 %19, label %tile.preheader, label %tile.after

tile.preheader:                                   ; preds = %entry
  br label %tile

tile:                                             ; preds = %element.after, %tile.preheader
  %tile.i = phi i64 [ %14, %tile.preheader ], [ %78, %element.after ]
  %20 = udiv i64 %tile.i, %7
  %21 = mul nsw i64 %20, %7
  %22 = sub nsw i64 %tile.i, %21
  %23 = udiv i64 %20, 1
  %24 = mul nsw i64 %23, 1
  %25 = sub nsw i64 %20, %24
  %26 = mul nsw i64 %22, 256
  %27 = add nsw i64 %26, 256
  %28 = icmp slt i64 %27, %5
  %29 = select i1 %28, i64 %27, i64 %5
  %30 = sub nsw i64 %29, %26
  %31 = urem i64 %30, 16
  %32 = sub nsw i64 %29, %31
  %33 = icmp slt i64 %26, %32
  br i1 %33, label %vector.preheader, label %vector.after

tile.exit:                                        ; preds = %element.after
  br label %tile.after

tile.after:                                       ; preds = %tile.exit, %entry
  ret void

vector.preheader:                                 ; preds = %tile
  br label %vector

vector:                                           ; preds = %vector, %vector.preheader
  %vector.i = phi i64 [ %26, %vector.preheader ], [ %45, %vector ]
  %34 = mul nsw i64 %vector.i, 1
  %35 = add nsw i64 0, %34
  %36 = getelementptr float, ptr %buffer0, i64 %35
  %37 = load <16 x float>, ptr %36, align 4
  %38 = fadd contract <16 x float> <float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00>, %37
  %39 = fcmp contract ogt <16 x float> <float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01>, %38
  %40 = select contract <16 x i1> %39, <16 x float> <float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01>, <16 x float> %38
  %41 = select contract <16 x i1> zeroinitializer, <16 x float> <float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01>, <16 x float> %40
  %42 = mul nsw i64 %vector.i, 1
  %43 = add nsw i64 0, %42
  %44 = getelementptr float, ptr %buffer1, i64 %43
  store <16 x float> %41, ptr %44, align 4
  %45 = add nsw i64 %vector.i, 16
  %46 = icmp slt i64 %45, %32
  br i1 %46, label %vector, label %vector.exit, !llvm.loop !0

vector.exit:                                      ; preds = %vector
  br label %vector.after

vector.after:                                     ; preds = %vector.exit, %tile
  %47 = sub nsw i64 %29, %32
  %48 = urem i64 %47, 8
  %49 = sub nsw i64 %29, %48
  %50 = icmp slt i64 %32, %49
  br i1 %50, label %vector.preheader1, label %vector.after4

vector.preheader1:                                ; preds = %vector.after
  br label %vector2

vector2:                                          ; preds = %vector2, %vector.preheader1
  %vector.i5 = phi i64 [ %32, %vector.preheader1 ], [ %62, %vector2 ]
  %51 = mul nsw i64 %vector.i5, 1
  %52 = add nsw i64 0, %51
  %53 = getelementptr float, ptr %buffer0, i64 %52
  %54 = load <8 x float>, ptr %53, align 4
  %55 = fadd contract <8 x float> <float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00>, %54
  %56 = fcmp contract ogt <8 x float> <float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01>, %55
  %57 = select contract <8 x i1> %56, <8 x float> <float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01>, <8 x float> %55
  %58 = select contract <8 x i1> zeroinitializer, <8 x float> <float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01, float 5.000000e-01>, <8 x float> %57
  %59 = mul nsw i64 %vector.i5, 1
  %60 = add nsw i64 0, %59
  %61 = getelementptr float, ptr %buffer1, i64 %60
  store <8 x float> %58, ptr %61, align 4
  %62 = add nsw i64 %vector.i5, 8
  %63 = icmp slt i64 %62, %49
  br i1 %63, label %vector2, label %vector.exit3, !llvm.loop !2

vector.exit3:                                     ; preds = %vector2
  br label %vector.after4

vector.after4:                                    ; preds = %vector.exit3, %vector.after
  %64 = icmp slt i64 %49, %29
  br i1 %64, label %element.preheader, label %element.after

element.preheader:                                ; preds = %vector.after4
  br label %element

element:                                          ; preds = %element, %element.preheader
  %element.i = phi i64 [ %49, %element.preheader ], [ %76, %element ]
  %65 = mul nsw i64 %element.i, 1
  %66 = add nsw i64 0, %65
  %67 = getelementptr float, ptr %buffer0, i64 %66
  %68 = load float, ptr %67, align 4
  %69 = fadd contract float 1.000000e+00, %68
  %70 = fcmp contract ogt float 5.000000e-01, %69
  %71 = select contract i1 %70, float 5.000000e-01, float %69
  %72 = select contract i1 false, float 5.000000e-01, float %71
  %73 = mul nsw i64 %element.i, 1
  %74 = add nsw i64 0, %73
  %75 = getelementptr float, ptr %buffer1, i64 %74
  store float %72, ptr %75, align 4
  %76 = add nsw i64 %element.i, 1
  %77 = icmp slt i64 %76, %29
  br i1 %77, label %element, label %element.exit, !llvm.loop !3

element.exit:                                     ; preds = %element
  br label %element.after

element.after:                                    ; preds = %element.exit, %vector.after4
  %78 = add nsw i64 %tile.i, 1
  %79 = icmp slt i64 %78, %18
  br i1 %79, label %tile, label %tile.exit, !llvm.loop !4
}

attributes #0 = { nounwind "min-legal-vector-width"="256" "prefer-vector-width"="256" "target-cpu"="x86-64-v3" "target-features"="+avx,+avx2,+f16c,+fma" }
attributes #1 = { noinline nounwind "min-legal-vector-width"="256" "prefer-vector-width"="256" "target-cpu"="x86-64-v3" "target-features"="+avx,+avx2,+f16c,+fma" }

!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.disable"}
!2 = distinct !{!2, !1}
!3 = distinct !{!3, !1}
!4 = distinct !{!4, !1}
