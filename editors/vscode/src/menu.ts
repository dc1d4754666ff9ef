import * as vscode from 'vscode';
import {
  CodeActionRequest, CodeActionTriggerKind, type CodeAction, type LanguageClient,
} from 'vscode-languageclient/node';
import { isCuda } from './client';

type Run = (editor: vscode.TextEditor) => Thenable<unknown>;

/** The kind of all that can be done to a kernel. */
const KIND = 'refactor.rewrite.cuda';

const say = (text: string): void => void vscode.window.showInformationMessage(`cuda-lsp: ${text}`);

/** Palette commands about the kernel at the cursor; each starts from what the server offers as code actions there. */
export function registerMenu(client: () => Promise<LanguageClient | undefined>): vscode.Disposable[] {
  /** As the server sends them: VS Code's own list leaves out what lies behind an action. */
  const actionsAt = async (editor: vscode.TextEditor): Promise<CodeAction[]> => {
    const running = await client();
    if (!running?.isRunning()) {
      say('the language server is not running: see its log.');
      return [];
    }
    const found = await running.sendRequest(CodeActionRequest.type, {
      textDocument: running.code2ProtocolConverter.asTextDocumentIdentifier(editor.document),
      range: running.code2ProtocolConverter.asRange(editor.selection),
      context: { diagnostics: [], only: [KIND], triggerKind: CodeActionTriggerKind.Invoked },
    }) as CodeAction[] | null;
    if (!found?.length) say('the cursor is in no kernel.');
    return found ?? [];
  };

  /** Runs the one action with this command, or the one that the user picks; where there is none, says why. */
  const runOffered = async (editor: vscode.TextEditor, command: string): Promise<void> => {
    const actions = (await actionsAt(editor)).filter((action) => commandOf(action) === command);
    const open = actions.filter((action) => !action.disabled);
    if (open.length === 0) {
      if (actions[0]) say(actions[0].disabled?.reason ?? '');
      return;
    }
    const items = open.map((action) => ({ label: action.title, action }));
    const chosen = items.length === 1 ? items[0] : await vscode.window.showQuickPick(items);
    if (chosen) await vscode.commands.executeCommand(command, ...(chosen.action.command?.arguments ?? []));
  };

  /** Runs a command that takes the kernel at the cursor and nothing else. */
  const runOnKernel = async (editor: vscode.TextEditor, command: string): Promise<void> => {
    const [action] = await actionsAt(editor);
    if (!action) return;
    const { command: _, ...kernel } = action.command?.arguments?.[0] ?? action.data;
    await vscode.commands.executeCommand(command, kernel);
  };

  const commands: Record<string, Run> = {
    suggestIdeas: (editor) => runOffered(editor, 'cuda-lsp.suggestIdeas'),
    optimize: (editor) => runOffered(editor, 'cuda-lsp.optimize'),
    tryIdea: (editor) => runOffered(editor, 'cuda-lsp.tryIdea'),
    verify: (editor) => runOffered(editor, 'cuda-lsp.verify'),
    benchmark: (editor) => runOffered(editor, 'cuda-lsp.benchmark'),
    describeWorkload: () => vscode.commands.executeCommand(
      'editor.action.codeAction', { kind: `${KIND}.describe`, apply: 'first' }),
    review: (editor) => runOffered(editor, 'cuda-lsp.review'),
    cancel: (editor) => runOnKernel(editor, 'cuda-lsp.cancel'),
  };
  const forget = async (): Promise<void> => {
    if ((await client())?.isRunning()) await vscode.commands.executeCommand('cuda-lsp.forgetConsent');
    else say('the language server is not running: see its log.');
  };
  const onKernels = Object.entries(commands).map(([name, run]) =>
    vscode.commands.registerCommand(`cuda-lsp.client.${name}`, async () => {
      const editor = vscode.window.activeTextEditor;
      if (editor && isCuda(editor.document)) await run(editor);
      else say('open a CUDA file and put the cursor into a kernel.');
    }));
  return [...onKernels, vscode.commands.registerCommand('cuda-lsp.client.forgetConsent', forget)];
}

/** The server's command behind an action, or the one that it would be. */
const commandOf = (action: CodeAction): string | undefined => action.command?.command ?? action.data?.command;
