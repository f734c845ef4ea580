"""core_variant: the core and what stresses it, built with options of its own.

A program links one variant, or //core, not both: they define the same
functions.
"""

load("//third_party/ck:defs.bzl", "CK_COPTS")

def core_variant(name, copts):
    """Declares the library NAME.

    Args:
      name: the target.
      copts: options of rings, growth, core and stress/post_run.
    """
    native.cc_library(
        name = name,
        testonly = True,
        srcs = [
            "arena.c",
            "arena.h",
            "bulk.c",
            "bulk.h",
            "chain.c",
            "chain.h",
            "kernels.c",
            "kernels.h",
            "options.c",
            "options.h",
            "post_run.c",
            "post_run.h",
            "sums.c",
            "sums.h",
            "//core:code",
            "//growth:code",
            "//rings:code",
        ],
        copts = CK_COPTS + copts,
        linkstatic = True,
        local_defines = ["_DEFAULT_SOURCE"],
        tags = ["plain"],
        textual_hdrs = [
            "arena.h",
            "bulk.h",
            "chain.h",
            "kernels.h",
            "options.h",
            "post_run.h",
            "sums.h",
            "//core:code",
            "//growth:code",
            "//rings:code",
        ],
        deps = [
            ":kernels_cubins",
            ":replay",
            "//core/abi",
            "//core/api",
            "//core/cubin",
            "//core/lock_order",
            "//core/qmd",
            "//paths:call",
            "//paths:path",
            "//paths/model",
            "//third_party/ck",
            "@urcu//:bp",
        ],
    )

def planted_test(name, plant, srcs, says, args = [], copts = [], deps = []):
    """Declares NAME, which passes where a program fails for a planted bug.

    Args:
      name: the test.
      plant: the flag of rings/plant.h, without RING_PLANT_.
      srcs: the program's, beside the core and stress/post_run.
      says: an extended regular expression of what its failure says.
      args: the program's arguments.
      copts: further options of the program and the core.
      deps: further libraries of the program.
    """
    core_variant(
        name = name + "_core",
        copts = copts + ["-DRING_PLANT_%s=1" % plant],
    )
    native.cc_binary(
        name = name + "_program",
        testonly = True,
        srcs = srcs,
        copts = CK_COPTS + copts,
        linkopts = ["-pthread"],
        local_defines = ["_DEFAULT_SOURCE"],
        tags = ["plain"],
        deps = [
            ":%s_core" % name,
            "//paths/model",
        ] + deps,
    )
    native.sh_test(
        name = name,
        size = "medium",
        srcs = ["caught_test.sh"],
        args = [
            "'%s'" % says,
            "$(location :%s_program)" % name,
        ] + args,
        data = [":%s_program" % name],
        tags = ["plain"],
    )
