"""Compares the metadata of the packages with the files that name the project's version and the address of its repository."""

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest

from support import ROOT
from support.documents import PAGES, blocks

VERSION = (ROOT / "VERSION").read_text().strip()
REPOSITORY = (ROOT / "Distribution/repository").read_text().strip()
AUTHOR = "the apns-mock contributors"


def test_the_python_package():
    tomllib = pytest.importorskip("tomllib", reason="reading pyproject.toml needs Python 3.11 or newer")
    project = tomllib.loads((ROOT / "Clients/Python/pyproject.toml").read_text())["project"]
    assert (project["license"], project["authors"]) == ("Apache-2.0", [{"name": AUTHOR}])
    assert project["urls"] == {
        "Homepage": REPOSITORY, "Source": REPOSITORY, "Issues": f"{REPOSITORY}/issues",
        "Documentation": f"{REPOSITORY}/tree/main/Clients/Python#readme", "Changelog": f"{REPOSITORY}/blob/main/CHANGELOG.md"}
    assert f'VERSION = "{VERSION}"' in (ROOT / "Clients/Python/apns_mock/_version.py").read_text()


def test_the_node_package():
    package = json.loads((ROOT / "Clients/Node/package.json").read_text())
    assert (package["version"], package["license"], package["author"]) == (VERSION, "Apache-2.0", AUTHOR)
    assert package["homepage"] == f"{REPOSITORY}/tree/main/Clients/Node#readme"
    assert package["repository"] == {"type": "git", "url": f"git+{REPOSITORY}.git", "directory": "Clients/Node"}
    assert package["bugs"] == {"url": f"{REPOSITORY}/issues"}


def test_the_java_package():
    pom = ElementTree.parse(ROOT / "Clients/Java/pom.xml")

    def text(path):
        return pom.findtext("/".join(f"{{*}}{name}" for name in path.split("/")))

    assert (text("version"), text("url"), text("licenses/license/name")) == (VERSION, REPOSITORY, "Apache-2.0")
    assert text("developers/developer/name") == AUTHOR
    assert (text("scm/url"), text("scm/connection")) == (REPOSITORY, f"scm:git:{REPOSITORY}.git")
    assert text("scm/developerConnection") == text("scm/connection")
    assert text("issueManagement/url") == f"{REPOSITORY}/issues"
    for element in pom.iter("{*}url"):
        assert element.text.startswith((f"{REPOSITORY}", "https://www.apache.org/")), element.text
    module = ElementTree.parse(ROOT / "Clients/Java/testcontainers/pom.xml")
    assert module.findtext("{*}version") == module.findtext("{*}dependencies/{*}dependency/{*}version") == VERSION


def test_the_go_module():
    path = REPOSITORY.removeprefix("https://") + "/Clients/Go"
    assert (ROOT / "Clients/Go/go.mod").read_text().startswith(f"module {path}\n")
    assert f'const Version = "{VERSION}"' in (ROOT / "Clients/Go/doc.go").read_text()
    example = (ROOT / "Examples/go/go.mod").read_text()
    assert f"require {path} v{VERSION}\n" in example and f"replace {path} => ../../Clients/Go\n" in example
    readme = (ROOT / "Clients/Go/README.md").read_text()
    assert set(re.findall(r"github\.com/[\w./-]*", readme)) == {path, f"{path}/testcontainers"}
    assert f"go get {path}@v{VERSION}\n" in readme
    module = (ROOT / "Clients/Go/testcontainers/go.mod").read_text()
    assert module.startswith(f"module {path}/testcontainers\n") and f"\t{path} v{VERSION}\n" in module
    assert "testcontainers" not in (ROOT / "Clients/Go/go.mod").read_text()


def test_the_image():
    label = re.search(r"^LABEL ((?:.*\\\n)*.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]*)"', label[1]))
    assert labels.pop("description")
    assert labels == {
        "title": "apns-mock", "version": VERSION, "licenses": "Apache-2.0", "vendor": AUTHOR, "url": REPOSITORY,
        "source": REPOSITORY, "documentation": f"{REPOSITORY}#readme"}


def test_the_other_packages():
    assert f"Source: {REPOSITORY}\n" in (ROOT / "Distribution/debian/copyright").read_text()
    assert f"<{REPOSITORY}>" in (ROOT / "Distribution/README.packages.md").read_text()
    assert f"\nauthor: {AUTHOR}\n" in (ROOT / "action.yml").read_text()


@pytest.mark.parametrize("page", ["InCI", "Installing"])
def test_the_pages_name_this_version_and_repository(page):
    text = (PAGES / f"{page}.md").read_text()
    name = REPOSITORY.removeprefix("https://github.com/")
    assert set(re.findall(r"uses: ([\w-]+/apns-mock@[\w.]+)", text)) == {f"{name}@v{VERSION}"}
    assert set(re.findall(r"https://github\.com/[\w-]+/apns-mock", text)) <= {REPOSITORY}
    assert set(re.findall(r"releases/download/v([0-9.]+)$", text, re.MULTILINE)) <= {VERSION}
    assert "OWNER" not in text


def test_the_jobs_for_ci_name_their_file():
    """`make lint-distribution` validates them with the schema of that file."""
    jobs = [text.partition("\n")[0] for text in blocks((PAGES / "InCI.md").read_text(), "yaml")]
    assert jobs == ["# .github/workflows/test.yml", "# .github/workflows/test.yml", "# .gitlab-ci.yml", "# .gitlab-ci.yml"]
