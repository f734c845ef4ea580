"""relacy_test: the lock-free core under relacy, in one set-up."""

def relacy_test(name, set_up, args, plant = None, finds = None):
    """Declares NAME.

    Args:
      name: the test.
      set_up: a dictionary of core.cpp's and the core's -D.
      args: what is searched.
      plant: a flag of rings/plant.h, without RING_PLANT_.
      finds: what relacy's report of it contains; the test passes with it alone.
    """
    small = {
        "SEAT_PATIENCE": "2",
        "SEAT_ROUNDS": "1",
        "TAIL_SPARES": "2",
        "TAIL_STEP_BITS": "1",
    }
    flags = dict(small, **set_up)
    if plant:
        flags["RING_PLANT_" + plant] = "1"
    native.cc_test(
        name = name,
        size = "medium",
        srcs = [
            "core.cpp",
            "io.h",
            "rcu.h",
        ],
        args = args + (["--expect", "'%s'" % finds] if finds else []),
        # The .c files are C17: designated initializers are C++20's as well,
        # and the warnings below are for what C++ does differently.
        copts = [
            "-std=c++20",
            "-O1",  # without, relacy's threads overflow their stacks
            "-g0",
            "-U_FORTIFY_SOURCE",
            # Relacy replaces new and delete, for libstdc++ too.
            "-fvisibility=default",
            "-fno-sized-deallocation",
            "-Wno-pedantic",
            "-Wno-shadow",
            "-Wno-type-limits",  # SEAT_ROUNDS may be 0
            "-Wno-missing-field-initializers",
            "-DRIG_RELACY",
        ] + ["-D%s=%s" % (k, flags[k]) for k in sorted(flags.keys())],
        linkopts = ["-lstdc++"],
        tags = ["plain"],
        deps = [":rings_text"],
    )
