import * as vscode from 'vscode';
import { isCuda } from './client';

type Run = (editor: vscode.TextEditor) => Thenable<unknown>;

/** Palette commands about the kernel at the cursor; each starts from what the server offers as code actions there. */
const commands: Record<string, Run> = {
  suggestIdeas: (editor) => runOffered(editor, 'cuda-lsp.suggestIdeas'),
  optimize: (editor) => runOffered(editor, 'cuda-lsp.optimize'),
  verify: (editor) => runOffered(editor, 'cuda-lsp.verify'),
  benchmark: (editor) => runOffered(editor, 'cuda-lsp.benchmark'),
  describeWorkload: () => vscode.commands.executeCommand(
    'editor.action.codeAction', { kind: 'refactor.rewrite.cuda.describe', apply: 'first' }),
  review: (editor) => runOnKernel(editor, 'cuda-lsp.review'),
  tryIdea: async (editor) => {
    const idea = await vscode.window.showInputBox({ prompt: 'What should be changed, in your own words?' });
    if (idea) await runOnKernel(editor, 'cuda-lsp.tryIdea', idea);
  },
};

export function registerMenu(): vscode.Disposable[] {
  return Object.entries(commands).map(([name, run]) =>
    vscode.commands.registerCommand(`cuda-lsp.client.${name}`, async () => {
      const editor = vscode.window.activeTextEditor;
      if (editor && isCuda(editor.document)) await run(editor);
      else say('open a CUDA file and put the cursor into a kernel.');
    }));
}

const say = (text: string): void => void vscode.window.showInformationMessage(`cuda-lsp: ${text}`);

const actionsAt = async (editor: vscode.TextEditor): Promise<vscode.CodeAction[]> =>
  (await vscode.commands.executeCommand<vscode.CodeAction[]>(
    'vscode.executeCodeActionProvider', editor.document.uri, editor.selection))
    .filter((action) => action.kind && ours.contains(action.kind));

const ours = vscode.CodeActionKind.RefactorRewrite.append('cuda');

const whyNot = (actions: vscode.CodeAction[]): string => actions.length === 0
  ? 'the cursor is in no kernel.'
  : actions.find((action) => action.disabled)?.disabled?.reason ?? 'the server does not offer this here.';

/** Runs the one action that carries a command, or the one that the user picks. */
async function runOffered(editor: vscode.TextEditor, command: string): Promise<void> {
  const actions = await actionsAt(editor);
  const fitting = actions.filter((action) => action.command?.command === command && !action.disabled);
  if (fitting.length === 0) {
    say(whyNot(actions));
    return;
  }
  const items = fitting.map((action) => ({ label: action.title, action }));
  const chosen = items.length === 1 ? items[0] : await vscode.window.showQuickPick(items);
  if (chosen) await vscode.commands.executeCommand(command, ...(chosen.action.command?.arguments ?? []));
}

/** Runs a command that takes the kernel at the cursor first. */
async function runOnKernel(editor: vscode.TextEditor, command: string, ...rest: unknown[]): Promise<void> {
  const actions = await actionsAt(editor);
  const kernel = actions.find((action) => action.command?.arguments?.length)?.command?.arguments?.[0];
  if (kernel) await vscode.commands.executeCommand(command, kernel, ...rest);
  else say(whyNot(actions));
}
