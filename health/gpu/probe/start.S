// The entry point. The C library's own start-up file needs a symbol of glibc 2.34; this one needs only 2.2.5.
        .text
        .globl _start
        .type _start, @function
_start:
        xorl %ebp, %ebp
        movq %rdx, %r9                  // rtld_fini
        popq %rsi                       // argc
        movq %rsp, %rdx                 // argv
        andq $-16, %rsp
        pushq %rax                      // keeps the stack aligned
        pushq %rsp                      // stack_end
        xorl %r8d, %r8d                 // no fini, no init: there are no constructors
        xorl %ecx, %ecx
        leaq main(%rip), %rdi
        call *__libc_start_main@GOTPCREL(%rip)
        hlt
        .size _start, . - _start
        .section .note.GNU-stack, "", @progbits
