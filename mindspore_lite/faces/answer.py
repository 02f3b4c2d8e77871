"""The Future of a request, for all classes that have submit()."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from mindspore_lite.core.boundary import named
from mindspore_lite.serving import feeds
from mindspore_lite.serving.service import Ended, Service
from mindspore_lite.tensor import Tensor

FAILED = "predict failed! "


class Answer(Future[list[Tensor]]):
    """The Future of a request. It stays pending until the end, so that it can be cancelled.

    Args:
        service: What computes it. It is held until the end: who drops a runner still gets answers.
        begin: Its submit(), but for the last argument.
        outputs: Tensors to write the results into; None makes new ones.
    """

    def __init__(
        self,
        service: Service,
        begin: Callable[[Ended], Callable[[], bool]],
        outputs: Sequence[Tensor] | None,
    ) -> None:
        super().__init__()
        self._service = service
        self._outputs = outputs
        self._cancel = begin(self._ended)

    def cancel(self) -> bool:
        """End the request, waiting or running; False when it has ended already."""
        if self._cancel():  # for one caller only
            super().cancel()
            self.set_running_or_notify_cancel()
        return self.cancelled()

    def _ended(self, found: list[Any] | BaseException) -> None:
        if not isinstance(found, BaseException):
            try:
                self.set_result(feeds.tensors(self._service.outputs, found, self._outputs))
                return
            except Exception as exc:  # noqa: BLE001 - whoever waits must learn of it
                found = exc
        self.set_exception(named(found, FAILED) if isinstance(found, Exception) else found)
        del (
            self,
            found,
        )  # which the frames of the error may hold: without a circle, all goes with it
