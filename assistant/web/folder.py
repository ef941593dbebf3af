"""The folder that is followed while the page runs, as the settings or the page say, and what came of its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock

from assistant.errors import LibraryError
from assistant.library.arrivals import Arrivals
from assistant.library.shelves import own_library
from assistant.library.watched import Happening, Happenings, Watch, chosen_folder, store_choice
from assistant.settings import Settings
from assistant.store.users import DEFAULT_USER


class FollowedFolder:
    """The folder of who is alone here, without logins: `may_follow` says who is. Nobody else follows one."""

    def __init__(
        self,
        settings: Settings,
        may_follow: Callable[[str], bool],
        arrivals: Arrivals,
        changed: Callable[[str], object] = lambda _user: None,
    ) -> None:
        """`changed` is called with the user whose documents did."""
        self._settings, self._may_follow, self._arrivals, self._changed = settings, may_follow, arrivals, changed
        self._watch: Watch | None = None
        self._lock = Lock()

    def start(self) -> None:
        """Begin to follow the folder that was chosen, if any.

        Raises:
            LibraryError: it can't be followed.
        """
        folder = chosen_folder(self._settings)
        if folder and self._may_follow(DEFAULT_USER):
            with self._lock:
                self._begin(folder)

    def close(self) -> None:
        """Follow no longer."""
        with self._lock:
            self._end()

    def may(self, user: str) -> bool:
        """Whether this user chooses the folder, and sees what came of it."""
        return user == DEFAULT_USER and self._may_follow(user)

    @property
    def folder(self) -> str:
        """The folder that is followed, "" for none."""
        return str(self._watch.folder) if self._watch else ""

    @property
    def mark(self) -> str:
        """Another text as soon as another folder is followed, or more has become of its files."""
        return f"{self.folder} {Happenings(self._settings).mark}"

    def happenings(self) -> Sequence[Happening]:
        """What became of its files, the newest first."""
        return Happenings(self._settings).all()

    def choose(self, user: str, folder: str) -> None:
        """Follow this folder from now on, or none where it is "". What is in the library of the one before stays.

        Raises:
            LibraryError: the user may not, there is no such folder, or it can't be followed.
        """
        if not self.may(user):
            raise LibraryError("A folder is followed only where nobody needs to log in.")
        path = Path(folder).expanduser()
        if folder and not (path.is_absolute() and path.is_dir()):
            raise LibraryError("There is no such folder on this computer; give its whole path.")
        with self._lock:
            self._end()
            if folder:
                self._begin(path)
            store_choice(str(path) if folder else "", self._settings)

    def _begin(self, folder: Path) -> None:
        self._watch = Watch(
            folder,
            own_library(DEFAULT_USER),
            self._settings,
            lambda: self._arrivals.track(DEFAULT_USER, [folder.name]),
            lambda: self._changed(DEFAULT_USER),
        )

    def _end(self) -> None:
        if self._watch:
            self._watch.close()
        self._watch = None
