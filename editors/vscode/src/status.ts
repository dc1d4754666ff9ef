import * as vscode from 'vscode';
import { State, type LanguageClient } from 'vscode-languageclient/node';
import { selector } from './client';

/** Whether the server runs, beside the language in the status bar. */
export class Status implements vscode.Disposable {
  private readonly item = vscode.languages.createLanguageStatusItem('cuda-lsp', selector);
  private watched: vscode.Disposable | undefined;

  constructor() {
    this.item.name = 'cuda-lsp';
    this.item.command = { title: 'Show Log', command: 'cuda-lsp.client.showLog' };
  }

  follow(client: LanguageClient): void {
    this.watched?.dispose();
    this.show(client.state);
    this.watched = client.onDidChangeState(({ newState }) => this.show(newState));
  }

  private show(state: State): void {
    this.item.busy = state === State.Starting;
    this.item.text = `cuda-lsp: ${{ [State.Starting]: 'starting', [State.Running]: 'running' }[state as number] ?? 'stopped'}`;
    this.item.severity = state === State.Stopped
      ? vscode.LanguageStatusSeverity.Error : vscode.LanguageStatusSeverity.Information;
  }

  dispose(): void {
    this.watched?.dispose();
    this.item.dispose();
  }
}
