import io

import pytest
from PIL import Image

from adgn.report.charts import depth_charts, dot_charts
from adgn.report.pictures import panels_png
from tests.report.sample import TABLES


@pytest.mark.parametrize("index", range(len(TABLES)))
def test_a_picture_shows_something_and_is_the_same_each_time(sample, index):
    table = sample.tables[index]
    charts = [*depth_charts(table), *dot_charts(table)]
    content = panels_png(charts)
    picture = Image.open(io.BytesIO(content)).convert("RGB")
    assert picture.width > 1000
    assert len(picture.getcolors(maxcolors=10**6)) > 50
    if index == 1:
        assert panels_png(charts) == content
