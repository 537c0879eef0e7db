	.text
	.file	"m"
	.globl	micro
	.p2align	4, 0x90
	.type	micro,@function
micro:
	testb	$1, 16(%rsp)
	vxorps	%xmm0, %xmm0, %xmm0
	vxorps	%xmm1, %xmm1, %xmm1
	vxorps	%xmm2, %xmm2, %xmm2
	vxorps	%xmm3, %xmm3, %xmm3
	vxorps	%xmm4, %xmm4, %xmm4
	vxorps	%xmm9, %xmm9, %xmm9
	vxorps	%xmm6, %xmm6, %xmm6
	vxorps	%xmm5, %xmm5, %xmm5
	vxorps	%xmm7, %xmm7, %xmm7
	vxorps	%xmm8, %xmm8, %xmm8
	vxorps	%xmm10, %xmm10, %xmm10
	vxorps	%xmm11, %xmm11, %xmm11
	je	.LBB0_2
	leaq	(%r8,%r8,2), %rax
	vmovups	(%rcx,%r8,4), %ymm2
	vmovups	32(%rcx,%r8,4), %ymm3
	vmovups	(%rcx,%r8,8), %ymm4
	vmovups	32(%rcx,%r8,8), %ymm9
	vmovups	(%rcx), %ymm0
	vmovups	32(%rcx), %ymm1
	vmovups	(%rcx,%rax,4), %ymm6
	vmovups	32(%rcx,%rax,4), %ymm5
	leaq	(%r8,%r8,4), %rax
	shlq	$4, %r8
	vmovups	(%rcx,%r8), %ymm7
	vmovups	32(%rcx,%r8), %ymm8
	vmovups	(%rcx,%rax,4), %ymm10
	vmovups	32(%rcx,%rax,4), %ymm11
.LBB0_2:
	movq	%rdx, %rax
	andq	$-4, %rax
	jle	.LBB0_5
	xorl	%ecx, %ecx
	.p2align	4, 0x90
.LBB0_4:
	vbroadcastss	(%rdi), %ymm12
	vmovups	(%rsi), %ymm13
	vmovups	32(%rsi), %ymm14
	vbroadcastss	92(%rdi), %ymm15
	addq	$4, %rcx
	vfmadd231ps	%ymm13, %ymm12, %ymm0
	vfmadd231ps	%ymm12, %ymm14, %ymm1
	vbroadcastss	4(%rdi), %ymm12
	vfmadd231ps	%ymm13, %ymm12, %ymm2
	vfmadd231ps	%ymm12, %ymm14, %ymm3
	vbroadcastss	8(%rdi), %ymm12
	vfmadd231ps	%ymm13, %ymm12, %ymm4
	vfmadd231ps	%ymm12, %ymm14, %ymm9
	vbroadcastss	12(%rdi), %ymm12
	vfmadd231ps	%ymm13, %ymm12, %ymm6
	vfmadd231ps	%ymm12, %ymm14, %ymm5
	vbroadcastss	16(%rdi), %ymm12
	vfmadd231ps	%ymm13, %ymm12, %ymm7
	vfmadd231ps	%ymm12, %ymm14, %ymm8
	vbroadcastss	20(%rdi), %ymm12
	vfmadd231ps	%ymm13, %ymm12, %ymm10
	vfmadd231ps	%ymm14, %ymm12, %ymm11
	vmovups	64(%rsi), %ymm13
	vbroadcastss	24(%rdi), %ymm14
	vmovups	96(%rsi), %ymm12
	vfmadd231ps	%ymm13, %ymm14, %ymm0
	vfmadd231ps	%ymm14, %ymm12, %ymm1
	vbroadcastss	28(%rdi), %ymm14
	vfmadd231ps	%ymm13, %ymm14, %ymm2
	vfmadd231ps	%ymm14, %ymm12, %ymm3
	vbroadcastss	32(%rdi), %ymm14
	vfmadd231ps	%ymm13, %ymm14, %ymm4
	vfmadd231ps	%ymm14, %ymm12, %ymm9
	vbroadcastss	36(%rdi), %ymm14
	vfmadd231ps	%ymm13, %ymm14, %ymm6
	vfmadd231ps	%ymm14, %ymm12, %ymm5
	vbroadcastss	40(%rdi), %ymm14
	vfmadd231ps	%ymm13, %ymm14, %ymm7
	vfmadd231ps	%ymm14, %ymm12, %ymm8
	vbroadcastss	44(%rdi), %ymm14
	vfmadd231ps	%ymm13, %ymm14, %ymm10
	vfmadd231ps	%ymm12, %ymm14, %ymm11
	vmovups	128(%rsi), %ymm12
	vbroadcastss	48(%rdi), %ymm14
	vmovups	160(%rsi), %ymm13
	vfmadd231ps	%ymm12, %ymm14, %ymm0
	vfmadd231ps	%ymm14, %ymm13, %ymm1
	vbroadcastss	52(%rdi), %ymm14
	vfmadd231ps	%ymm12, %ymm14, %ymm2
	vfmadd231ps	%ymm14, %ymm13, %ymm3
	vbroadcastss	56(%rdi), %ymm14
	vfmadd231ps	%ymm12, %ymm14, %ymm4
	vfmadd231ps	%ymm14, %ymm13, %ymm9
	vbroadcastss	60(%rdi), %ymm14
	vfmadd231ps	%ymm12, %ymm14, %ymm6
	vfmadd231ps	%ymm14, %ymm13, %ymm5
	vbroadcastss	64(%rdi), %ymm14
	vfmadd231ps	%ymm12, %ymm14, %ymm7
	vfmadd231ps	%ymm14, %ymm13, %ymm8
	vbroadcastss	68(%rdi), %ymm14
	vfmadd231ps	%ymm12, %ymm14, %ymm10
	vfmadd231ps	%ymm13, %ymm14, %ymm11
	vmovups	192(%rsi), %ymm12
	vmovups	224(%rsi), %ymm13
	vbroadcastss	72(%rdi), %ymm14
	addq	$256, %rsi
	vfmadd231ps	%ymm12, %ymm14, %ymm0
	vfmadd231ps	%ymm14, %ymm13, %ymm1
	vbroadcastss	76(%rdi), %ymm14
	vfmadd231ps	%ymm12, %ymm15, %ymm10
	vfmadd231ps	%ymm13, %ymm15, %ymm11
	vfmadd231ps	%ymm12, %ymm14, %ymm2
	vfmadd231ps	%ymm14, %ymm13, %ymm3
	vbroadcastss	80(%rdi), %ymm14
	vfmadd231ps	%ymm12, %ymm14, %ymm4
	vfmadd231ps	%ymm14, %ymm13, %ymm9
	vbroadcastss	84(%rdi), %ymm14
	vfmadd231ps	%ymm12, %ymm14, %ymm6
	vfmadd231ps	%ymm14, %ymm13, %ymm5
	vbroadcastss	88(%rdi), %ymm14
	addq	$96, %rdi
	vfmadd231ps	%ymm12, %ymm14, %ymm7
	vfmadd231ps	%ymm14, %ymm13, %ymm8
	cmpq	%rax, %rcx
	jl	.LBB0_4
.LBB0_5:
	movq	8(%rsp), %rcx
	cmpq	%rdx, %rax
	je	.LBB0_7
	.p2align	4, 0x90
.LBB0_6:
	vmovups	(%rsi), %ymm12
	vmovups	32(%rsi), %ymm13
	vbroadcastss	(%rdi), %ymm14
	vbroadcastss	20(%rdi), %ymm15
	addq	$64, %rsi
	incq	%rax
	vfmadd231ps	%ymm12, %ymm14, %ymm0
	vfmadd231ps	%ymm14, %ymm13, %ymm1
	vbroadcastss	4(%rdi), %ymm14
	vfmadd231ps	%ymm12, %ymm15, %ymm10
	vfmadd231ps	%ymm13, %ymm15, %ymm11
	vfmadd231ps	%ymm12, %ymm14, %ymm2
	vfmadd231ps	%ymm14, %ymm13, %ymm3
	vbroadcastss	8(%rdi), %ymm14
	vfmadd231ps	%ymm12, %ymm14, %ymm4
	vfmadd231ps	%ymm14, %ymm13, %ymm9
	vbroadcastss	12(%rdi), %ymm14
	vfmadd231ps	%ymm12, %ymm14, %ymm6
	vfmadd231ps	%ymm14, %ymm13, %ymm5
	vbroadcastss	16(%rdi), %ymm14
	addq	$24, %rdi
	vfmadd231ps	%ymm12, %ymm14, %ymm7
	vfmadd231ps	%ymm14, %ymm13, %ymm8
	cmpq	%rdx, %rax
	jl	.LBB0_6
.LBB0_7:
	leaq	(%rcx,%rcx,2), %rax
	leaq	(%rcx,%rcx,4), %rdx
	vmovups	%ymm0, (%r9)
	vmovups	%ymm1, 32(%r9)
	vmovups	%ymm2, (%r9,%rcx,4)
	vmovups	%ymm3, 32(%r9,%rcx,4)
	vmovups	%ymm4, (%r9,%rcx,8)
	vmovups	%ymm9, 32(%r9,%rcx,8)
	shlq	$4, %rcx
	vmovups	%ymm6, (%r9,%rax,4)
	vmovups	%ymm5, 32(%r9,%rax,4)
	vmovups	%ymm7, (%r9,%rcx)
	vmovups	%ymm8, 32(%r9,%rcx)
	vmovups	%ymm10, (%r9,%rdx,4)
	vmovups	%ymm11, 32(%r9,%rdx,4)
	vzeroupper
	retq
.Lfunc_end0:
	.size	micro, .Lfunc_end0-micro

	.section	".note.GNU-stack","",@progbits
