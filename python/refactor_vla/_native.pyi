"""The extension module, which is written in Rust (``crates/python``)."""

from typing import Any, final

__version__: str

def main(words: list[str], launcher: list[str]) -> int:
    """Run the program with these arguments; return its exit code. ``launcher`` starts this program again."""

def call(words: list[str]) -> tuple[bytes, list[str]]:
    """Run a command; return what it would print on stdout, and its warnings."""

@final
class Session:
    """A loaded policy."""

    def __new__(
        cls, run: str, device: str, weights: str | None, replan: int, emit: str, arm: str | None
    ) -> Session: ...
    @property
    def warnings(self) -> list[str]:
        """What a user should know of the policy."""

    def metadata(self) -> str:
        """What the policy expects and returns, as JSON."""

    def infer(self, observations: list[tuple[int, dict[str, Any]]]) -> list[tuple[bytes, str] | None]:
        """Answer observations of different clients together: actions as float32, and the other keys as JSON."""

    def reset(self) -> None:
        """Forget all episodes."""
