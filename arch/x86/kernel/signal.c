// SPDX-License-Identifier: BSD-2-Clause
/*
 * Signal frames: builds Linux's rt_sigframe on the user stack, from which C libraries and unwinders
 * read the interrupted registers, and restores the registers from it. Nothing in a frame is
 * trusted: segments are fixed, flags are masked, extended registers are checked before they are
 * loaded, and a bad rip only faults.
 */
#include <asm/signal.h>

#include <asm/desc.h>
#include <asm/fpu.h>
#include <lego/errno.h>
#include <lego/kernel.h>
#include <lego/profile.h>
#include <lego/sched.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define NR_RESTART_SYSCALL 219 /* in arch/x86/entry/syscalls.tbl */
#define SYSCALL_BYTES	   2   /* of the instruction */

#define NO_CALL (~0ULL) /* orig_rax outside system calls */

#define RED_ZONE_BYTES 128
#define FRAME_ALIGN    16
#define XSTATE_ALIGN   64
#define PUSHED_BY_CALL 8 /* a function expects rsp 8 off the alignment */

#define UC_FP_XSTATE	     1
#define UC_SIGCONTEXT_SS     2
#define UC_STRICT_RESTORE_SS 4

#define RFLAGS_TF BIT(8)
#define RFLAGS_DF BIT(10)
#define RFLAGS_RF BIT(16)
/* What a frame may change: AC, RF, OF, DF, TF, SF, ZF, AF, PF, CF. */
#define RFLAGS_FRAME 0x50dd5ULL

struct sigcontext {
	u64 r8, r9, r10, r11, r12, r13, r14, r15;
	u64 rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, rflags;
	u16 cs, gs, fs, ss;
	u64 error_code, trap_nr, oldmask, cr2;
	u64 fpstate;
	u64 reserved[8];
};

struct ucontext {
	u64 flags;
	u64 link;
	struct kernel_sigaltstack stack;
	struct sigcontext mcontext;
	u64 sigmask;
};

struct rt_sigframe {
	struct frame_head {
		u64 pretcode;
		struct ucontext uc;
	} head;
	struct siginfo info;
};

BUILD_BUG_ON(sizeof(struct sigcontext) != 256);
BUILD_BUG_ON(sizeof(struct siginfo) != 128);
BUILD_BUG_ON(sizeof(struct rt_sigframe) != 440);

static void call_again(struct pt_regs *regs, u64 nr)
{
	regs->rax = nr;
	regs->rip -= SYSCALL_BYTES;
	profile_syscall_again(regs->rip, regs->rsp);
}

void signal_settle_call(struct pt_regs *regs, const struct kernel_sigaction *action)
{
	u64 nr = regs->orig_rax;

	if (nr == NO_CALL)
		return;
	regs->orig_rax = NO_CALL;
	switch ((s64)regs->rax) {
	case -ERESTART_RESTARTBLOCK:
		current->restart.nr = nr;
		if (action)
			break;
		call_again(regs, NR_RESTART_SYSCALL);
		return;
	case -ERESTARTNOHAND:
		if (action)
			break;
		call_again(regs, nr);
		return;
	case -ERESTARTSYS:
		if (action && !(action->flags & SA_RESTART))
			break;
		call_again(regs, nr);
		return;
	case -ERESTARTNOINTR:
		call_again(regs, nr);
		return;
	default:
		return;
	}
	regs->rax = -EINTR;
	profile_syscall_interrupted();
}

/*
 * Chooses the place of the frame and of the extended registers above it. Returns false if that is
 * beyond the alternative stack.
 */
static bool place_frame(const struct pt_regs *regs, const struct kernel_sigaction *action,
			u64 *frame, u64 *fpstate)
{
	const struct kernel_sigaltstack *stack = &current->altstack;
	bool on_altstack = signal_on_altstack(regs->rsp);
	u64 sp = regs->rsp - RED_ZONE_BYTES;

	if (action->flags & SA_ONSTACK && stack->size_bytes && !on_altstack) {
		on_altstack = true;
		sp = stack->sp + stack->size_bytes;
	}
	*fpstate = ALIGN_DOWN(sp - fpu_frame_bytes(), XSTATE_ALIGN);
	*frame = ALIGN_DOWN(*fpstate - sizeof(struct rt_sigframe), FRAME_ALIGN) - PUSHED_BY_CALL;
	if (!on_altstack)
		return true;
	return *frame > stack->sp && *frame - stack->sp <= stack->size_bytes;
}

static void fill_head(struct frame_head *head, const struct pt_regs *regs,
		      const struct kernel_sigaction *action, u64 fpstate, u64 mask)
{
	const struct thread_struct *thread = &current->thread;

	*head = (struct frame_head){
		.pretcode = action->restorer,
		.uc.flags = UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS |
			    (fpu_has_xsave() ? UC_FP_XSTATE : 0),
		.uc.stack = current->altstack,
		.uc.sigmask = mask,
		.uc.mcontext = {
			.r8 = regs->r8,
			.r9 = regs->r9,
			.r10 = regs->r10,
			.r11 = regs->r11,
			.r12 = regs->r12,
			.r13 = regs->r13,
			.r14 = regs->r14,
			.r15 = regs->r15,
			.rdi = regs->rdi,
			.rsi = regs->rsi,
			.rbp = regs->rbp,
			.rbx = regs->rbx,
			.rdx = regs->rdx,
			.rax = regs->rax,
			.rcx = regs->rcx,
			.rsp = regs->rsp,
			.rip = regs->rip,
			.rflags = regs->rflags,
			.cs = regs->cs,
			.ss = regs->ss,
			.error_code = thread->error_code,
			.trap_nr = thread->trap_nr,
			.oldmask = mask,
			.cr2 = thread->fault_addr,
			.fpstate = fpstate,
		},
	};
}

static void enter_handler(struct pt_regs *regs, int sig, const struct kernel_sigaction *action,
			  u64 frame)
{
	regs->rdi = sig;
	regs->rax = 0; /* number of vector registers, for a handler without a prototype */
	regs->rsi = frame + offsetof(struct rt_sigframe, info);
	regs->rdx = frame + offsetof(struct rt_sigframe, head.uc);
	regs->rip = action->handler;
	regs->rsp = frame;
	regs->cs = USER_CS;
	regs->ss = USER_DS;
	regs->rflags &= ~(RFLAGS_DF | RFLAGS_RF | RFLAGS_TF);
	fpu_reset();
	profile_syscall_handler();
}

int signal_push_frame(struct pt_regs *regs, int sig, const struct kernel_sigaction *action,
		      const struct siginfo *info, u64 mask)
{
	struct kernel_sigaltstack *stack = &current->altstack;
	struct rt_sigframe __user *frame;
	struct frame_head head;
	u64 addr, fpstate;

	if (!(action->flags & SA_RESTORER) || !place_frame(regs, action, &addr, &fpstate))
		return -EFAULT;
	frame = (void __user *)addr;
	fill_head(&head, regs, action, fpstate, mask);
	if (fpu_save_frame((void __user *)fpstate) ||
	    copy_to_user(&frame->head, &head, sizeof(head)) ||
	    copy_to_user(&frame->info, info, sizeof(*info)))
		return -EFAULT;
	if (stack->flags & SS_AUTODISARM)
		*stack = (struct kernel_sigaltstack){ .flags = SS_DISABLE };
	enter_handler(regs, sig, action, addr);
	return 0;
}

static void restore_context(struct pt_regs *regs, const struct sigcontext *sc)
{
	u64 rflags = (regs->rflags & ~RFLAGS_FRAME) | (sc->rflags & RFLAGS_FRAME);

	*regs = (struct pt_regs){
		.r8 = sc->r8,
		.r9 = sc->r9,
		.r10 = sc->r10,
		.r11 = sc->r11,
		.r12 = sc->r12,
		.r13 = sc->r13,
		.r14 = sc->r14,
		.r15 = sc->r15,
		.rdi = sc->rdi,
		.rsi = sc->rsi,
		.rbp = sc->rbp,
		.rbx = sc->rbx,
		.rdx = sc->rdx,
		.rax = sc->rax,
		.rcx = sc->rcx,
		.rsp = sc->rsp,
		.rip = sc->rip,
		.rflags = rflags,
		.cs = USER_CS,
		.ss = USER_DS,
		.orig_rax = regs->orig_rax, /* still in the call */
	};
}

/* The handler's last instruction has popped pretcode. */
SYSCALL_DEFINE0(rt_sigreturn)
{
	struct pt_regs *regs = task_pt_regs(current);
	struct rt_sigframe __user *frame = (void __user *)(regs->rsp - sizeof(u64));
	struct ucontext uc;

	current->restart.fn = NULL;
	if (get_user(uc, &frame->head.uc))
		goto out_bad;
	signal_set_blocked(uc.sigmask);
	restore_context(regs, &uc.mcontext);
	current->has_new_frame = true;
	profile_syscall_sigreturn(regs->rip, regs->rsp);
	if (fpu_restore_frame((const void __user *)uc.mcontext.fpstate))
		goto out_bad;
	/* As in Linux, an invalid stack is no error here. */
	(void)signal_set_altstack(&uc.stack, regs->rsp);
	regs->orig_rax = NO_CALL; /* rax is not the result of a call */
	return (long)regs->rax;
out_bad:
	regs->orig_rax = NO_CALL;
	signal_force_fault(SIGSEGV, SI_KERNEL, 0, regs, "bad frame of a signal handler");
	return 0;
}
