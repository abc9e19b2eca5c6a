"""Who are we to ZooKeeper, and how do we know that it is ZooKeeper?

ZooKeeper opens every place to everyone unless each place says otherwise. With a user and a password all that is made
here is for that user alone. The password crosses the network as it is, so it belongs together with TLS.
"""

import ssl
from pathlib import Path
from typing import Any

from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl
from msgspec import Struct

from .errors import CoordinatorError

HIDDEN = frozenset({"password", "keyfile_password"})


class Security(Struct, frozen=True, kw_only=True):
    """How to sign in (digest), and TLS. As it stands: no password, no TLS, and everything open to everyone.

    `ca`, `certfile` and `keyfile` are paths of PEM files; without `ca` the system's authorities count. `verify` may be
    switched off only for a test: it covers both the certificate and the host name in it.
    """

    user: str = ""
    password: str = ""
    tls: bool = False
    ca: str = ""
    certfile: str = ""
    keyfile: str = ""
    keyfile_password: str = ""
    verify: bool = True

    def __post_init__(self) -> None:
        """`ValueError` for what says half of something: the driver would leave it out without a word."""
        if bool(self.user) != bool(self.password):
            raise ValueError("a ZooKeeper user needs a password, and the other way round")
        if bool(self.certfile) != bool(self.keyfile):
            raise ValueError("a client certificate needs its key file, and the other way round")
        if not self.tls and (self.ca or self.certfile):
            raise ValueError("certificates are given, but TLS is not switched on")
        if ":" in self.user:
            raise ValueError("a ZooKeeper user may not contain a colon")

    def __repr__(self) -> str:
        return f"Security({', '.join(f'{name}={value!r}' for name, value in self._shown())})"

    def __rich_repr__(self) -> Any:
        yield from self._shown()

    def _shown(self) -> list[tuple[str, object]]:
        fields = [(name, getattr(self, name)) for name in self.__struct_fields__]
        return [(name, "…" if value and name in HIDDEN else value) for name, value in fields]

    def credentials(self) -> set[tuple[str, str]]:
        """What is said when signing in, as the driver takes it."""
        return {("digest", f"{self.user}:{self.password}")} if self.user else set()

    def acl(self) -> list[Any]:
        """To whom what we make is open."""
        return [make_digest_acl(self.user, self.password, all=True)] if self.user else list(OPEN_ACL_UNSAFE)

    def context(self) -> ssl.SSLContext | None:
        """For TLS; None for none. `CoordinatorError` names a file that is not there, or does not hold what it should.

        The driver would make its own, which trusts the system's authorities as well when there is one in `ca`.
        """
        if not self.tls:
            return None
        for file in filter(None, (self.ca, self.certfile, self.keyfile)):
            if not Path(file).is_file():
                raise CoordinatorError(f"no such file: {file}")
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            if self.certfile:
                context.load_cert_chain(self.certfile, self.keyfile, self.keyfile_password)
        except (ssl.SSLError, OSError) as refused:
            files = ", ".join(filter(None, (self.ca, self.certfile, self.keyfile)))
            raise CoordinatorError(f"no certificate or key to use in {files}: {refused}") from refused
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context
