        .section .rodata
        .globl elastic_gpu_probe_begin, elastic_gpu_probe_end
        .hidden elastic_gpu_probe_begin, elastic_gpu_probe_end
        .balign 16
elastic_gpu_probe_begin:
        .incbin "elastic-gpu-probe"
elastic_gpu_probe_end:
        .section .note.GNU-stack, "", @progbits
