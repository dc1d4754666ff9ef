import * as vscode from 'vscode';
import type { LanguageClient } from 'vscode-languageclient/node';
import { createClient, start, stop } from './client';
import { ApiKey } from './key';
import { registerMenu } from './menu';
import { handleWorkDoneProgress } from './progress';
import { Reviews } from './review';
import { Status } from './status';

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel('cuda-lsp', { log: true });
  const status = new Status();
  const reviews = new Reviews();
  const key = new ApiKey(context.secrets);

  const restart = async (): Promise<void> => {
    if (client) await stop(client);
    const progress = handleWorkDoneProgress(() => client);
    client = createClient(log, { ...reviews.middleware, handleWorkDoneProgress: progress }, await key.environment());
    status.follow(client);
    reviews.follow(client);
    await start(client, log);
  };
  // One after the other: two at once would leave a server behind.
  let last = Promise.resolve();
  const restarted = (): Promise<void> => (last = last.then(restart, restart));
  const ready = (): Promise<LanguageClient | undefined> => last.then(() => client);
  const keyChanged = async (): Promise<void> => {
    await restarted();
    const has = Object.keys(await key.environment()).length ? 'has the key now' : 'has no key any more';
    if (vscode.window.state.focused) void vscode.window.showInformationMessage(`cuda-lsp: the language server ${has}.`);
  };

  context.subscriptions.push(
    log, status, reviews, ...key.register(), ...registerMenu(ready),
    vscode.commands.registerCommand('cuda-lsp.client.restart', restarted),
    vscode.commands.registerCommand('cuda-lsp.client.showLog', () => log.show()),
    key.onDidChange(keyChanged),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration('cuda-lsp.command')) void restarted();
    }),
  );
  await restarted();
}

export async function deactivate(): Promise<void> {
  if (client) await stop(client);
}
