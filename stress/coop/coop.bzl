"""coop_world: the lock-free core and the world over it, under coop's schedules."""

load("//third_party/ck:defs.bzl", "CK_COPTS")

# Small, so that threads meet: few spares, and a seat that is soon handed over.
COOP_COPTS = CK_COPTS + [
    "-O1",
    "-DRIG_COOP",
    "-DRING_IO_HOOK",
    "-DTAIL_SPARES=2",
    "-DTAIL_STEP_BITS=1",
    "-DSEAT_ROUNDS=1",
    "-DSEAT_PATIENCE=2",
]

def coop_world(name, copts = []):
    """Declares the library NAME.

    Args:
      name: the target.
      copts: further options of rings.
    """
    native.cc_library(
        name = name,
        testonly = True,
        srcs = [
            "gpu.c",
            "judge.c",
            "world.c",
            "world.h",
            "world_state.h",
            "//rings:code",
        ],
        copts = COOP_COPTS + copts,
        # The answers of these reach the judge first.
        linkopts = [
            "-Wl,--wrap=ring_reserve",
            "-Wl,--wrap=ring_encode",
            "-Wl,--wrap=straight_take",
            "-Wl,--wrap=straight_put",
        ],
        linkstatic = True,
        # _exit under -std=c17.
        local_defines = ["_DEFAULT_SOURCE"],
        tags = ["plain"],
        textual_hdrs = [
            "world.h",
            "//rings:code",
        ],
        deps = [
            ":coop",
            "//core/abi",
            "//core/api",
            "//core/lock_order",
            "//core/qmd",
            "//stress:replay",
            "//third_party/ck",
            "@urcu//:bp",
        ],
    )

def coop_caught_tests(plant, says, strategies):
    """Declares tests that pass where a seed of coop_test's finds a bug.

    Args:
      plant: the flag of rings/plant.h, without RING_PLANT_.
      says: an extended regular expression of what the failure says.
      strategies: those that find it, a test each.
    """
    name = plant.lower()
    coop_world(
        name = name + "_world",
        copts = ["-DRING_PLANT_%s=1" % plant],
    )
    native.cc_binary(
        name = name + "_program",
        testonly = True,
        srcs = ["coop_test.c"],
        tags = ["plain"],
        deps = [
            ":coop",
            ":%s_world" % name,
            "//stress:replay",
        ],
    )
    for strategy in strategies:
        native.sh_test(
            name = "%s_%s_caught_test" % (name, strategy),
            size = "medium",
            srcs = ["//stress:caught_test.sh"],
            args = [
                "'%s'" % says,
                "$(location :%s_program)" % name,
                "--strategy",
                strategy,
                # More than coop_test's: which seed is the first to find a bug
                # changes with every access that the core gains or loses.
                "--seeds",
                "20000",
            ],
            data = [":%s_program" % name],
            tags = ["plain"],
        )
