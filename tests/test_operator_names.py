"""Every name of python-graphblas's operator namespaces is here with its types, or excluded with a reason."""

import importlib
import pickle

import graphblas as pg
import pytest
from programs import WIDE

import gbgpu
from gbgpu import binary, exceptions, indexunary, monoid, op, select, semiring, unary
from gbgpu.dtypes import BOOL, FP64, INT8, INT64
from gbgpu.semiring._types import SUPPORTED

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # names that the oracle is about to move
KINDS = ("unary", "binary", "monoid", "semiring", "select", "indexunary", "op")
PLACES = [*KINDS, *(f"{kind}.ss" for kind in KINDS), *(f"{kind}.numpy" for kind in KINDS[:4]), "op.numpy"]

COMPLEX = "complex types aren't supported"
FOREIGN = "takes C code for SuiteSparse's own compiler"
EXCLUDED = {
    **{f"unary.{name}": COMPLEX for name in ("carg", "cimag", "conj", "creal")},
    **{f"unary.numpy.{name}": COMPLEX for name in ("conj", "conjugate")},
    "binary.cmplx": COMPLEX,
    **{f"op.{name}": COMPLEX for name in ("carg", "cimag", "conj", "creal", "cmplx", "numpy.conj", "numpy.conjugate")},
    **{f"{kind}.ss.register_new": FOREIGN for kind in ("unary", "binary", "select", "indexunary")},
}
# With these types the oracle's tables have gaps or leftovers that it does not use.
ANY_TYPE = {"tril", "triu", "diag", "offdiag", "rowle", "rowgt", "colle", "colgt", "indexle", "indexgt"}
ANY_TYPE |= {"rowindex", "colindex", "diagindex", "index"}


# Missing in the oracle's tables, though it answers for them.
BOOL_MISSING = {"max_pair", "min_pair", "plus_pair", "times_pair", "times_first", "times_second"}


def find(root, path):
    for name in path.split("."):
        root = getattr(root, name)
    return root


def public(place):
    theirs = find(pg, place)
    return [f"{place}.{name}" for name in dir(theirs) if not name.startswith("_")]


def some(place):
    """The public names, but a quarter of NumPy's, of which the oracle infers the types as they are asked for."""
    few = 1 if WIDE or "numpy" not in place else 80 if place.startswith("semiring") else 4
    return public(place)[::few]


@pytest.mark.parametrize("place", PLACES)
def test_every_name_is_supported_or_excluded(place):
    missing = []
    for path in public(place):
        try:
            find(gbgpu, path)
            assert path not in EXCLUDED, f"{path} is there: take it off the list"
        except AttributeError:
            missing += [path] if path not in EXCLUDED else []
    assert not missing


@pytest.mark.parametrize("place", PLACES)
def test_names_are_listed(place):
    listed = set(dir(find(gbgpu, place)))
    wanted = {path.rpartition(".")[2] for path in public(place) if path not in EXCLUDED}
    assert wanted <= listed


def table(operator):
    """{type name: result type name} of an operator, for the types that both libraries have."""
    names = {dtype.name for dtype in SUPPORTED}
    types = {str(dtype): str(result) for dtype, result in operator.types.items()}
    return {dtype: result for dtype, result in types.items() if dtype in names and result in names}


@pytest.mark.parametrize("place", [place for place in PLACES if place.partition(".")[0] not in ("semiring", "op")])
def test_type_tables_are_equal(place):
    for path in some(place):
        if path in EXCLUDED or not hasattr(theirs := find(pg, path), "types"):
            continue
        mine = find(gbgpu, path)
        if path.rpartition(".")[2] in ANY_TYPE:
            assert table(theirs).items() <= table(mine).items(), path
        else:
            assert table(mine) == table(theirs), path


@pytest.mark.parametrize("place", ["semiring", "semiring.ss", "semiring.numpy"])
def test_semiring_tables_are_equal(place):
    for path in some(place):
        theirs = find(pg, path)
        if hasattr(theirs, "types"):
            mine = table(find(gbgpu, path))
            if path.removeprefix("semiring.") in BOOL_MISSING:
                assert "BOOL" in theirs and mine.pop("BOOL")
            assert mine == table(theirs), path


def test_numpy_names_are_the_built_in_ones_where_they_mean_the_same():
    assert binary.numpy.add is binary.plus and unary.numpy.rint is unary.round and monoid.numpy.fmax is monoid.max
    assert semiring.numpy.add_multiply is semiring.plus_times and op.numpy.add is op.plus
    assert semiring.ss.min_firsti is semiring.min_firsti and binary.ss.firsti is binary.firsti
    assert repr(binary.numpy.gcd) == repr(pg.binary.numpy.gcd) and repr(binary.numpy) == "binary.numpy"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = binary.numpy.nothing


# --- registration ----------------------------------------------------------------------------------------------------


def test_dotted_names_make_parts_of_a_namespace():
    made = unary.register_new("mine.deep.plus_one", lambda x: x + 1)
    assert unary.mine.deep.plus_one is made is op.mine.deep.plus_one and made[INT8].return_type is INT8
    assert dir(unary.mine) == ["deep"] and "mine" in dir(unary) and "mine.deep.plus_one" not in dir(unary)
    assert repr(made) == "unary.mine.deep.plus_one" and unary.from_string("mine.deep.plus_one") is made
    for name in ("abs", "mine", "mine.deep", "mine.deep.plus_one", "abs.below", "numpy", "ss"):
        with pytest.raises(AttributeError, match="already defined"):
            unary.register_new(name, lambda x: x)
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        _ = unary.mine.other


def scaled(factor, offset=0):
    return lambda x, y: x * factor + y * factor + offset


def test_operators_with_parameters():
    made = binary.register_new("test_scaled", scaled, parameterized=True)
    assert binary.test_scaled is made and made(3) is made(3) and made(3) is not made(3, offset=1)
    assert made(3)[INT64].program.key != made(4)[INT64].program.key
    total = monoid.register_new("test_scaled", made, lambda factor, offset=0: -offset)
    assert total(1)[INT64].identity == 0 and total(1) is total(1)
    both = semiring.register_anonymous(total, binary.first, "test_scaled_first")
    assert both(1)[INT64].monoid.binary.program == made(1)[INT64].program
    assert binary.isclose(rel_tol=0.5)[FP64].return_type is BOOL and binary.isclose() is binary.isclose()
    with pytest.raises(TypeError, match="missing 1 required"):
        made()


def test_lazy_ones_are_there_when_asked_for():
    assert binary.register_new("test_lazy", lambda x, y: x - y, lazy=True) is None
    assert binary.test_lazy[INT64].return_type is INT64 and op.test_lazy is binary.test_lazy
    assert monoid.register_new("test_lazy", binary.plus, 0, lazy=True) is None and monoid.test_lazy[INT64].identity == 0


def test_user_types_are_refused():
    for register in (unary.register_anonymous, binary.register_anonymous, indexunary.register_anonymous):
        with pytest.raises(exceptions.NotImplementedException, match="is_udt"):
            register(lambda x, y: x, is_udt=True)


def test_a_positional_test_selects_too():
    made = indexunary.register_new("test_even_row", lambda x, i, j, t: i % 2 == t)
    assert select.test_even_row[INT64].program == made[INT64].program
    indexunary.register_new("test_next_row", lambda x, i, j, t: i + 1)
    assert not hasattr(select, "test_next_row")


def test_operators_are_pickled_by_name():
    named = [unary.abs, binary.numpy.gcd, binary.isclose, binary.isclose(1e-3), monoid.plus, monoid.numpy.maximum]
    named += [semiring.min_plus, semiring.numpy.add_gcd, semiring.ss.any_firsti, select.tril, indexunary.rowindex]
    typed = [unary.abs[INT8], binary.plus[INT8], monoid.plus[INT8], semiring.min_plus[INT8], select.tril[INT8]]
    for operator in named + typed:
        assert pickle.loads(pickle.dumps(operator)) is operator
    again = pickle.loads(pickle.dumps(binary.register_anonymous(sum_of_squares)))
    assert again[INT64].program == binary.register_anonymous(sum_of_squares)[INT64].program
    assert pickle.loads(pickle.dumps(binary.register_anonymous(scaled, parameterized=True)))(2)[INT64].return_type


def sum_of_squares(x, y):
    return x * x + y * y


@pytest.mark.parametrize("kind", ["unary", "binary", "monoid", "semiring"])
def test_strings(kind):
    texts = ["add", "exp", "firsti", "add[int]", "min.+", "add.multiply", "%"]
    texts += ["numpy.exp", "numpy.add", "ss.firsti"] if kind != "semiring" else []  # the oracle fails on these
    theirs, mine = getattr(pg, kind), importlib.import_module(f"gbgpu.{kind}")
    for text in [*texts, "min.+[INT8]", "any.firsti", "plus[INT8]", "a.b.c"]:
        try:
            expected = repr(theirs.from_string(text)).replace("ss.", "")
        except ValueError:
            with pytest.raises(ValueError):
                mine.from_string(text)
        else:
            assert repr(mine.from_string(text)).removeprefix("semiring.") == expected.removeprefix("semiring.")


def test_commuted_names():
    """For the operators that have a name in the oracle; ours has some more."""
    for kind in ("binary", "semiring"):
        for path in [p for p in public(kind) if "." not in p.removeprefix(f"{kind}.") and p not in EXCLUDED]:
            theirs, mine = getattr(find(pg, path), "commutes_to", None), getattr(find(gbgpu, path), "commutes_to", None)
            if theirs is not None and mine is not None:
                assert repr(mine) == repr(theirs).replace("ss.", ""), path
            elif path != "binary.isclose":
                assert theirs is None or not hasattr(theirs, "types"), path
    assert binary.lt[INT64].commutes_to is binary.gt[INT64] and binary.ldexp.commutes_to is None
    assert semiring.min_first[INT64].commutes_to is semiring.min_second[INT64]
    assert monoid.plus.commutes_to is monoid.plus and monoid.plus[INT8].commutes_to is monoid.plus[INT8]
    assert binary.register_anonymous(lambda x, y: x - 2 * y).commutes_to is None


def test_aggregators_by_sign():
    for text in ("+", "*", "&", "|", "+[INT32]", "sum"):
        assert repr(gbgpu.agg.from_string(text)) == repr(pg.agg.from_string(text))
