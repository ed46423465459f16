"""Every public name of python-graphblas's classes and modules is here, or on a list with the reason why not. (Operators
are walked by test_operator_names.)"""

from __future__ import annotations

import inspect

import graphblas as pg
import pytest

import gbgpu as gb

C_OBJECT = "the C object behind a handle; gbgpu has none"
C_CALL = "how an expression calls the C library"
MEMORY = "hands an object's memory to SuiteSparse or takes it away; export and import_* copy"
BYTES = "SuiteSparse's own bytes; gb.io.save and pickle keep objects"
SWITCHES = "switches of SuiteSparse"
TYPES = "complex numbers and types made by users aren't supported"
C_ERRORS = "errors of C programs, which Python can't cause here"
OTHER_LIBRARIES = "a library that gbgpu does not use"

EXPRESSIONS = ("args", "at", "bt", "cfunc_name", "construct_output", "expr_repr", "method_name", "output_type")
EXPRESSIONS += ("resolved_indexes", "gb_obj")
PARTS = {"config": SWITCHES, "serialize": BYTES, "deserialize": BYTES, "unpack": MEMORY, "unpack_hyperhash": MEMORY}
EXCLUDED: dict[str, dict[str, str]] = {
    "handle": {"gb_obj": C_OBJECT},
    "expression": dict.fromkeys(EXPRESSIONS, C_CALL),
    "updater": dict.fromkeys(("kwargs", "opts", "updater", "is_submask", "resolved_indexes"), C_CALL),
    "ss": PARTS,
    "gb": {"Recorder": "records calls of the C library; gb.trace and gb.explain show statements", "backend": C_CALL,
           "viz": "drawing is left to networkx and matplotlib"},
    "agg": {},
    "io": {f"{way}_{what}": OTHER_LIBRARIES for way in ("from", "to") for what in ("awkward", "pydata_sparse")},
    "gb.ss": dict.fromkeys(("Context", "about", "burble", "config", "global_context"), SWITCHES),
    "dtypes": dict.fromkeys(("FC32", "FC64", "register_anonymous", "register_new", "ss"), TYPES),
    "exceptions": {
        **dict.fromkeys(("InsufficientSpace", "InvalidObject", "NullPointer", "UninitializedObject"), C_ERRORS),
        **dict.fromkeys(("GrB_NO_VALUE", "GrB_SUCCESS", "check_status", "check_status_carg", "JitError"), C_ERRORS),
    },
}  # fmt: skip


def examples(module) -> dict:
    """An example of each class, and the modules: name -> (list of exclusions, object)."""
    A, v = module.Matrix.from_coo([0, 1], [1, 0], [1, 2]), module.Vector.from_coo([0, 1], [1, 2])
    s = module.Scalar.from_value(1)
    return {
        "Matrix": ("handle", A), "Vector": ("handle", v), "Scalar": ("handle", s), "A.T": ("handle", A.T),
        "A.mxm(A)": ("expression", A.mxm(A)), "A.mxv(v)": ("expression", A.mxv(v)),
        "v.reduce()": ("expression", v.reduce()),
        "A | A": ("expression", A | A), "A @ A": ("expression", A @ A), "v | v": ("expression", v | v),
        "v @ v": ("expression", v @ v), "A[[0], [0]]": ("expression", A[[0], [0]]), "A[0, :]": ("expression", A[0, :]),
        "v[[0]]": ("expression", v[[0]]), "v[0]": ("expression", v[0]), "A.S": ("handle", A.S),
        "A(A.S)": ("updater", A(A.S)),
        "A(A.S)[[0], [0]]": ("updater", A(A.S)[[0], [0]]), "Matrix.ss": ("ss", module.Matrix.ss), "A.ss": ("ss", A.ss),
        "Vector.ss": ("ss", module.Vector.ss), "v.ss": ("ss", v.ss), "gb": ("gb", module), "agg": ("agg", module.agg),
        "agg.ss": ("agg", module.agg.ss), "io": ("io", module.io), "gb.ss": ("gb.ss", module.ss),
        "dtypes": ("dtypes", module.dtypes), "exceptions": ("exceptions", module.exceptions),
    }  # fmt: skip


PLACES = list(examples(gb))


def public(thing) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def missing(place: str) -> tuple[set[str], dict[str, str]]:
    excluded, theirs = examples(pg)[place]
    mine = examples(gb)[place][1]
    packs = {name: MEMORY for name in public(theirs) if name.startswith("pack_")} if excluded == "ss" else {}
    lazily = {"core"} if place == "gb" else set()
    return public(theirs) - public(mine) - lazily, EXCLUDED[excluded] | packs


@pytest.mark.parametrize("place", PLACES)
def test_every_name_is_here_or_excluded(place):
    gone, excluded = missing(place)
    assert gone <= set(excluded)


def test_nothing_is_excluded_that_is_here():
    """A name on a list is missing somewhere."""
    seen: dict[str, set[str]] = {}
    for place in PLACES:
        seen.setdefault(examples(pg)[place][0], set()).update(missing(place)[0])
    for kind, names in EXCLUDED.items():
        assert set(names) <= seen[kind], kind


HINTED = "Matrix.ss", "A.ss", "Vector.ss", "v.ss", "gb", "io", "gb.ss", "dtypes", "exceptions"


@pytest.mark.parametrize("place", HINTED)
def test_names_that_are_not_here_say_what_is(place):
    mine, (gone, _) = examples(gb)[place][1], missing(place)
    for name in gone:
        with pytest.raises(AttributeError, match=f"no attribute '{name}'. Hint: ..."):
            getattr(mine, name)
        assert not hasattr(mine, name) and name not in dir(mine)
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'$"):
        mine.no_such_name  # noqa: B018


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("gb.exceptions.GrB_NO_VALUE", "A.get"), ("gb.exceptions.NullPointer", "GraphblasException"),
        ("gb.viz", "to_networkx"), ("gb.Recorder", "gb.trace()"), ("gb.backend", "gb.init"),
        ("gb.ss.burble", "gb.trace()"), ("gb.ss.about", "gb.device_info()"), ("gb.ss.Context", "gb.init"),
        ("gb.dtypes.FC64", "complex"), ("gb.dtypes.register_new", "an object for each field"),
        ("gb.io.to_awkward", "to_coo"), ("gb.io.from_awkward", "from_coo"), ("gb.io.to_numpy", "to_dense"),
        ("A.ss.pack_csr", "import_csr"), ("gb.Vector.ss.unpack", "export"), ("A.ss.export_csr", 'export("csr")'),
        ("v.ss.import_csr", "import_any"), ("v.ss.serialize", "pickle"),
    ],
)  # fmt: skip
def test_hints_for_names_of_python_graphblas(text, hint):
    A, v = gb.Matrix(int, 2, 2), gb.Vector(int, 2)
    with pytest.raises(AttributeError) as raised:
        eval(text, {"gb": gb, "A": A, "v": v})
    assert hint in str(raised.value).partition(". Hint: ")[2]
    owner, _, name = text.rpartition(".")
    owner = eval(owner, {"gb": gb, "A": A, "v": v})
    assert not hasattr(owner, name) and name not in dir(owner)


@pytest.mark.parametrize("backend", ["suitesparse", "suitesparse-vanilla"])
def test_backends_of_python_graphblas(backend):
    with pytest.raises(TypeError, match=f"came '{backend}'. Hint: gb.init"):
        gb.init(backend)


@pytest.mark.parametrize("name", ["Matrix", "Vector", "Scalar"])
def test_operators_of_python_are_the_same(name):
    """Dunder methods: what one class can do, the other can."""
    theirs, mine = getattr(pg, name), getattr(gb, name)
    known = {*dir(object), "__del__", "__networkx_plugin__", "__weakref__", "__sizeof__", "__module__", "__slots__"}
    assert {n for n in dir(theirs) if n.startswith("__")} - known <= set(dir(mine))


OURS = {("local", "to_coo"), ("local", "from_coo")}  # of ranks, which are not there


# Keywords of SuiteSparse's calls (`**opts`) and of C scalars are let be
@pytest.mark.parametrize("name", ["Matrix", "Vector", "Scalar"])
def test_signatures(name):
    """Parameters have python-graphblas's names, kinds and order."""
    theirs, mine = getattr(pg, name), getattr(gb, name)
    for method in sorted(public(theirs) & public(mine)):
        if not inspect.isroutine(getattr(theirs, method)) or method == "ss":
            continue
        one, two = (inspect.signature(getattr(cls, method)).parameters for cls in (theirs, mine))
        wanted = [(n, p.kind) for n, p in one.items() if p.kind is not p.VAR_KEYWORD]
        given = [(n, p.kind) for n, p in two.items() if p.kind is not p.VAR_KEYWORD and (n, method) not in OURS]
        assert given == wanted, f"{name}.{method}"


def test_core_has_what_packages_import():
    from gbgpu.core import operator
    from gbgpu.core.matrix import TransposedMatrix
    from gbgpu.core.utils import ensure_type, output_type

    A = gb.Matrix.from_coo([0], [1], [2], nrows=2, ncols=2)
    assert output_type(A) is gb.Matrix and output_type(A.T) is TransposedMatrix and output_type(A @ A) is gb.Matrix
    assert output_type(A[0, :]) is gb.Vector and output_type(A[0, 0]) is gb.Scalar and output_type(3) is int
    assert ensure_type(A + A, gb.Matrix).isequal((A * 2).new()) and ensure_type(A, gb.Matrix) is A
    with pytest.raises(TypeError):
        ensure_type(3, gb.Matrix)
    for text in ("min", "min_plus", "abs", "count", "rowindex"):
        theirs, kind = pg.core.operator.find_opclass(pg.op.from_string(text))
        assert operator.find_opclass(text)[1] == kind and operator.find_opclass(text)[0].name == theirs.name
    assert gb.core.operator.find_opclass(3) == (3, pg.core.operator.UNKNOWN_OPCLASS)
    assert operator.get_typed_op(gb.binary.plus, "INT8", "FP32") is gb.binary.plus["FP32"]


def test_config():
    with gb.config.set(autocompute=True) as config:
        assert config.get("autocompute") is True and dict(config) == dict(gb.config)
    with pytest.raises(gb.exceptions.NotImplementedException):
        gb.config.set(autocompute=False)
    with pytest.raises(KeyError):
        gb.config.set(no_such_option=1)
    assert gb.MAX_SIZE == pg.MAX_SIZE


def test_public_names_are_what_dir_shows():
    assert dir(gb) == sorted(gb.__all__) and all(hasattr(gb, name) for name in gb.__all__)
