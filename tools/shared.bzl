"""shared_build: a shared library, with the dependencies that one can have.

Debian's static liburcu is not position independent, so a shared library needs
the shared one. Under shared_build, @urcu//:bp is that (//tools:shared).
"""

def _setting_impl(ctx):
    return []

shared_setting = rule(
    implementation = _setting_impl,
    build_setting = config.bool(),
)

def _transition_impl(settings, attr):
    return {"//tools:shared_setting": True}

_transition = transition(
    implementation = _transition_impl,
    inputs = [],
    outputs = ["//tools:shared_setting"],
)

def _shared_build_impl(ctx):
    # Under its own name, which DT_SONAME and -l look for.
    out = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = out, target_file = ctx.file.library)
    return DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out]))

shared_build = rule(
    implementation = _shared_build_impl,
    attrs = {
        # Not a list, though the transition makes it one to `ctx.attr`.
        "library": attr.label(
            allow_single_file = True,
            cfg = _transition,
            mandatory = True,
        ),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)
