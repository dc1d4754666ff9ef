import * as vscode from 'vscode';
import type { LanguageClient, Middleware } from 'vscode-languageclient/node';

const SCHEME = 'cuda-lsp';

/** What the server says of a proposal (docs/protocol.md). */
interface Review {
  id: string;
  uri: string;
  kernel: string;
  title: string;
  verdict: string;
  evidence: string[];
  note: string;
  /** The whole document with the rewrite in it; null where the rewrite no longer fits or is to be applied by hand. */
  proposed: string | null;
  diff: string;
}

/** Proposals in the diff editor: on the left the user's own document, on the right what it would become. */
export class Reviews implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly shown = new Map<string, Review>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly verdict = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    after: { margin: '0 0 0 2em', color: new vscode.ThemeColor('editorCodeLens.foreground'), fontStyle: 'italic' },
  });
  private readonly subscriptions = [
    this.changed,
    this.verdict,
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
    vscode.window.onDidChangeVisibleTextEditors((editors) => editors.forEach((editor) => this.decorate(editor))),
    vscode.commands.registerCommand('cuda-lsp.client.accept', (uri?: vscode.Uri) => this.accept(uri)),
    vscode.commands.registerCommand('cuda-lsp.client.reject', (uri?: vscode.Uri) => this.reject(uri)),
  ];

  /** A review that was asked for, by a lens or from the palette, is shown here. */
  readonly middleware: Middleware = {
    executeCommand: async (command, args, next) => {
      const answer = await next(command, args);
      if (command === 'cuda-lsp.review' && answer) await this.open(answer as Review);
      return answer;
    },
  };

  /** One that the server shows of itself, when the user takes up its message, is shown here too. */
  follow(client: LanguageClient): void {
    client.onNotification('cuda-lsp/review', (review: Review) => this.open(review));
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    const review = this.shown.get(uri.query);
    return review?.proposed ?? review?.diff ?? '';
  }

  private async open(review: Review): Promise<void> {
    this.shown.set(review.id, review);
    const original = vscode.Uri.parse(review.uri);
    const right = rightOf(review, original.path);
    this.changed.fire(right);
    if (review.proposed === null) {
      await vscode.window.showTextDocument(right);
    } else {
      const title = `${original.path.split('/').pop()} \u2194 rewrite of ${review.kernel}`;
      await vscode.commands.executeCommand('vscode.diff', original, right, title, { preview: true });
    }
    vscode.window.visibleTextEditors.forEach((editor) => this.decorate(editor));
  }

  /** Puts the verdict at the end of the first line, with the evidence behind it. */
  private decorate(editor: vscode.TextEditor): void {
    const review = editor.document.uri.scheme === SCHEME ? this.shown.get(editor.document.uri.query) : undefined;
    if (!review) return;
    const name = editor.document.getText().search(new RegExp(`\\b${review.kernel.split('::').pop()}\\b`));
    const line = editor.document.lineAt(editor.document.positionAt(Math.max(name, 0)));
    const words = [`**${review.title}**`, review.verdict, ...review.evidence, ...(review.note ? [review.note] : [])];
    editor.setDecorations(this.verdict, [{
      range: line.range,
      hoverMessage: words.join('\n\n'),
      renderOptions: { after: { contentText: review.verdict } },
    }]);
  }

  private async accept(uri?: vscode.Uri): Promise<void> {
    const target = reviewed(uri);
    if (target && await vscode.commands.executeCommand('cuda-lsp.accept', target.query)) await this.close(target);
  }

  private async reject(uri?: vscode.Uri): Promise<void> {
    const target = reviewed(uri);
    if (!target) return;
    const reason = await vscode.window.showInputBox({ prompt: 'Why? (kept with the proposal; may be empty)' });
    if (reason === undefined) return;
    if (await vscode.commands.executeCommand('cuda-lsp.reject', target.query, reason)) await this.close(target);
  }

  private async close(uri: vscode.Uri): Promise<void> {
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    await vscode.window.tabGroups.close(tabs.filter((tab) => shownIn(tab)?.toString() === uri.toString()));
    this.shown.delete(uri.query);
  }

  dispose(): void {
    this.subscriptions.forEach((subscription) => subscription.dispose());
  }
}

/** The name keeps its ending, so that the text is coloured as CUDA or as a diff. */
const rightOf = (review: Review, path: string): vscode.Uri =>
  vscode.Uri.from({ scheme: SCHEME, path: review.proposed === null ? `${path}.diff` : path, query: review.id });

function shownIn(tab?: vscode.Tab): vscode.Uri | undefined {
  const input = tab?.input;
  if (input instanceof vscode.TabInputTextDiff) return input.modified;
  return input instanceof vscode.TabInputText ? input.uri : undefined;
}

/** The proposal that a button was pressed on, else the one in front. */
function reviewed(uri?: vscode.Uri): vscode.Uri | undefined {
  const target = uri ?? shownIn(vscode.window.tabGroups.activeTabGroup.activeTab);
  return target?.scheme === SCHEME ? target : undefined;
}
