import * as vscode from 'vscode';
import { ShowMessageRequest, type LanguageClient, type MessageActionItem, type ShowMessageRequestParams } from 'vscode-languageclient/node';

/** The button by which code is kept from a language model, or a reference from running (docs/protocol.md). */
const NEVER = 'Never in this project';

/** Whether code may be sent, or Python run, is asked in a dialog: a message would go behind the bell, and the job wait there for ever. */
async function ask({ message, actions = [] }: ShowMessageRequestParams): Promise<MessageActionItem | null> {
  const titles = actions.map((action) => action.title);
  const [first, ...others] = message.split('\n');
  const chosen = titles.includes(NEVER)
    ? await vscode.window.showInformationMessage(first, { modal: true, detail: others.join('\n') }, ...titles)
    : await vscode.window.showInformationMessage(message, ...titles);
  return actions.find((action) => action.title === chosen) ?? null;
}

/** For a client that is started: its own way to ask is set then. */
export const askInDialogs = (client: LanguageClient): vscode.Disposable => client.onRequest(ShowMessageRequest.type, ask);
