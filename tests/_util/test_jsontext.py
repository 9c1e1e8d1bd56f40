import pytest

from adgn._util.jsontext import parse_json


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 100_000, "[" * 500 + "]" * 500, "", "{", b"\xff", "nonsense"],
)
def test_every_text_that_is_not_usable_json_is_a_value_error(text):
    with pytest.raises(ValueError):
        parse_json(text)


def test_what_is_json():
    assert parse_json('{"a": [1, null]}') == {"a": [1, None]}
    assert parse_json("[" * 100 + "]" * 100)
