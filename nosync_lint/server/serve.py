"""The language server: what the protocol asks for, handed to the projects of the open documents."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from nosync_lint import __version__
from nosync_lint.config import FILES
from nosync_lint.server.actions import KINDS, actions
from nosync_lint.server.diagnostics import diagnostic
from nosync_lint.server.documents import Document, Homes
from nosync_lint.server.hover import hover
from nosync_lint.server.messages import Checked, Trouble
from nosync_lint.server.projects import PAUSE, Project
from nosync_lint.source import CUDA_SUFFIXES, PYTHON_SUFFIXES

WATCHED = f"**/{{{','.join([*(f'*{suffix}' for suffix in sorted(PYTHON_SUFFIXES | CUDA_SUFFIXES)), *FILES])}}}"
"""A glob of the files whose changes on disk matter."""


def serve() -> int:
    """Serve on standard input and output until the client ends it; 0 where it asked for that."""
    session = Session()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what anything prints must not stand among the messages
    try:
        session.server.start_io(stdout=answers)
    finally:
        session.close()
    return 0 if session.ended else 1


class Session:
    """One client, its open documents and their projects."""

    def __init__(self) -> None:
        # Whole texts: what pygls takes for the lines of a document is not what the protocol does.
        self.server = LanguageServer("nosync-lint", __version__, types.TextDocumentSyncKind.Full)
        self.ended = False
        self._homes = Homes()
        self._documents: dict[str, Document] = {}
        self._projects: dict[Path, Project] = {}
        self._told: set[str] = set()
        self._serve(types.INITIALIZED, self._initialized)
        self._serve(types.SHUTDOWN, self._shutdown)
        self._serve(types.TEXT_DOCUMENT_DID_OPEN, self._opened)
        self._serve(types.TEXT_DOCUMENT_DID_CHANGE, self._changed)
        self._serve(types.TEXT_DOCUMENT_DID_SAVE, self._saved)
        self._serve(types.TEXT_DOCUMENT_DID_CLOSE, self._closed)
        self._serve(types.WORKSPACE_DID_CHANGE_WATCHED_FILES, self._files_changed)
        self._serve(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, self._folders_changed)
        self._serve(types.TEXT_DOCUMENT_CODE_ACTION, self._actions, types.CodeActionOptions(code_action_kinds=KINDS))
        self._serve(types.TEXT_DOCUMENT_HOVER, self._hover)

    def _serve(self, method: str, handler: Callable[[Any], Any], options: Any = None) -> None:
        self.server.feature(method, options)(partial(handler))  # pygls writes onto what it is given

    def close(self) -> None:
        for project in self._projects.values():
            project.stop()
        self._homes.close()

    # -- the life of the session --

    def _initialized(self, params: types.InitializedParams) -> None:
        workspace = self.server.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace is not None else None
        if watching is not None and watching.dynamic_registration:
            options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(WATCHED)])
            registration = types.Registration("files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
            self.server.client_register_capability(types.RegistrationParams([registration]))

    async def _shutdown(self, params: None) -> None:
        self.ended = True
        for project in self._projects.values():
            await project.close()

    # -- documents --

    def _opened(self, params: types.DidOpenTextDocumentParams) -> None:
        self._place(params.text_document.uri, 0)

    def _changed(self, params: types.DidChangeTextDocumentParams) -> None:
        document = self._documents.get(params.text_document.uri)
        if document is not None:
            source = self.server.workspace.get_text_document(document.uri)
            document.text, document.version = source.source, source.version
            self._project(document).check(PAUSE)

    def _saved(self, params: types.DidSaveTextDocumentParams) -> None:
        """What is saved has been checked, unless another document or the configuration is meant."""
        document = self._documents.get(params.text_document.uri)
        if document is None and Path(to_fs_path(params.text_document.uri) or "").name in FILES:
            self._place_all()

    def _closed(self, params: types.DidCloseTextDocumentParams) -> None:
        document = self._documents.pop(params.text_document.uri, None)
        if document is not None:
            self._leave(document)

    def _files_changed(self, params: types.DidChangeWatchedFilesParams) -> None:
        changed = [Path(path).resolve() for one in params.changes if (path := to_fs_path(one.uri)) is not None]
        held = {document.home.path for document in self._documents.values()}
        if any(path.name in FILES for path in changed):
            self._place_all()
        elif any(path not in held for path in changed):  # an open document stands for its file
            for project in self._projects.values():
                project.check(PAUSE)

    def _folders_changed(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        self._place_all()

    def _place_all(self) -> None:
        """Find the projects of all documents again: a configuration or a folder of the workspace came or went."""
        self._told.clear()
        for document in list(self._documents.values()):
            self._leave(self._documents.pop(document.uri))
            self._place(document.uri, PAUSE)

    def _place(self, uri: str, pause: float) -> None:
        source = self.server.workspace.get_text_document(uri)
        home = self._homes.of(uri, source.language_id or "", self._folders())
        if home is None:
            return
        document = Document(uri, home, source.source, source.version)
        self._documents[uri] = document
        if home.folder not in self._projects:
            self._projects[home.folder] = Project(home.folder, home.shared, self._publish)
        project = self._project(document)
        project.documents[uri] = document
        project.check(pause)

    def _leave(self, document: Document) -> None:
        """Forget a document; the rest of its project is checked with what is on disk."""
        self.server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(document.uri, []))
        project = self._project(document)
        del project.documents[document.uri]
        project.check(PAUSE)
        if not project.documents:
            del self._projects[document.home.folder]

    def _project(self, document: Document) -> Project:
        return self._projects[document.home.folder]

    def _folders(self) -> list[Path]:
        workspace = self.server.workspace
        uris = list(workspace.folders) or ([workspace.root_uri] if workspace.root_uri else [])
        return [Path(path).resolve() for uri in uris if (path := to_fs_path(uri)) is not None]

    # -- results --

    def _publish(self, answer: Checked | Trouble, documents: Sequence[Document]) -> None:
        if isinstance(answer, Trouble):
            self._say(answer.reason, types.MessageType.Error)
            return
        for failure in answer.failures:
            self._say(failure, types.MessageType.Warning)
        for note in answer.notes:
            self._say(note, types.MessageType.Log)
        uri_of = self._uri_of if self._tells_related else None
        for document in documents:
            positions = document.positions(self.server.workspace.position_codec)
            told = [diagnostic(one, positions, uri_of) for one in document.found]
            self.server.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(document.uri, told, document.checked)
            )

    def _say(self, text: str, form: types.MessageType) -> None:
        """Tell the user something, once: every change would bring it again."""
        if text in self._told:
            return
        self._told.add(text)
        if form is types.MessageType.Log:
            self.server.window_log_message(types.LogMessageParams(form, text))
        else:
            self.server.window_show_message(types.ShowMessageParams(form, f"nosync-lint: {text}"))

    def _uri_of(self, filename: str) -> str:
        """The address of a file: that of the open document that stands for it, where there is one."""
        for document in self._documents.values():
            if str(document.home.path) == filename:
                return document.uri
        return from_fs_path(filename) or Path(filename).as_uri()

    @property
    def _tells_related(self) -> bool:
        told = self.server.client_capabilities.text_document
        publishing = told.publish_diagnostics if told is not None else None
        return bool(publishing is not None and publishing.related_information)

    @property
    def _takes_versions(self) -> bool:
        workspace = self.server.client_capabilities.workspace
        editing = workspace.workspace_edit if workspace is not None else None
        return bool(editing is not None and editing.document_changes)

    # -- requests --

    def _actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        document = self._documents.get(params.text_document.uri)
        if document is None:
            return []
        positions = document.positions(self.server.workspace.position_codec)
        only = None if params.context.only is None else [str(getattr(one, "value", one)) for one in params.context.only]
        return actions(document, positions, params.range, only, versioned=self._takes_versions)

    async def _hover(self, params: types.HoverParams) -> types.Hover | None:
        document = self._documents.get(params.text_document.uri)
        if document is None or document.home.is_skipped:
            return None
        explanation = await self._project(document).explain(document, params.position.line + 1)
        if not document.is_current:
            return None
        positions = document.positions(self.server.workspace.position_codec)
        return hover(document.found, explanation, positions, params.position)
