import * as vscode from 'vscode';
import type { LanguageClient } from 'vscode-languageclient/node';
import { createClient, start, stop } from './client';
import { registerMenu } from './menu';
import { Reviews } from './review';
import { Status } from './status';

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel('cuda-lsp', { log: true });
  const status = new Status();
  const reviews = new Reviews();

  const restart = async (): Promise<void> => {
    if (client) await stop(client);
    client = createClient(log, reviews.middleware);
    status.follow(client);
    reviews.follow(client);
    await start(client, log);
  };

  context.subscriptions.push(
    log, status, reviews, ...registerMenu(),
    vscode.commands.registerCommand('cuda-lsp.client.restart', restart),
    vscode.commands.registerCommand('cuda-lsp.client.showLog', () => log.show()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration('cuda-lsp.command')) void restart();
    }),
  );
  await restart();
}

export async function deactivate(): Promise<void> {
  if (client) await stop(client);
}
