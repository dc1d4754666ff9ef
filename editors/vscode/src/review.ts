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
  private readonly comments = vscode.comments.createCommentController('cuda-lsp', 'cuda-lsp');
  private readonly threads = new Map<string, vscode.CommentThread>();
  private readonly subscriptions = [
    this.changed,
    this.comments,
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
    vscode.window.tabGroups.onDidChangeTabs(({ closed }) => closed.forEach((tab) => this.forget(tab))),
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
    await this.comment(review, right);
  }

  /** Puts the verdict and its evidence below the kernel's first line, where they stay in sight beside the change. */
  private async comment(review: Review, right: vscode.Uri): Promise<void> {
    const document = await vscode.workspace.openTextDocument(right);
    const name = document.getText().search(new RegExp(`\\b${review.kernel.split('::').pop()}\\b`));
    const { range } = document.lineAt(document.positionAt(Math.max(name, 0)));
    this.threads.get(review.id)?.dispose();
    const thread = this.comments.createCommentThread(right, range, [
      { author: { name: 'cuda-lsp' }, body: wordsOf(review), mode: vscode.CommentMode.Preview },
    ]);
    thread.label = review.title;
    thread.canReply = false;
    thread.collapsibleState = vscode.CommentThreadCollapsibleState.Expanded;
    this.threads.set(review.id, thread);
  }

  private forget(tab: vscode.Tab): void {
    const uri = shownIn(tab);
    if (uri?.scheme !== SCHEME) return;
    this.threads.get(uri.query)?.dispose();
    this.threads.delete(uri.query);
    this.shown.delete(uri.query);
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
  }

  dispose(): void {
    this.subscriptions.forEach((subscription) => subscription.dispose());
  }
}

/** The verdict, with the evidence folded away behind it. */
function wordsOf(review: Review): vscode.MarkdownString {
  const escape = (text: string) => text.replace(/[&<>\\`*_{}[\]()#|~!]/g, (character) => `&#${character.codePointAt(0)};`);
  const list = [...review.evidence, review.note].filter(Boolean).map((line) => `<li>${escape(line)}</li>`).join('');
  const words = new vscode.MarkdownString(`${escape(review.verdict)}\n\n<details><summary>Evidence</summary><ul>${list}</ul></details>`);
  words.supportHtml = true;
  return words;
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
