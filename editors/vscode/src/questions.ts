import * as vscode from 'vscode';
import { ShowMessageRequest, type LanguageClient, type MessageActionItem, type ShowMessageRequestParams } from 'vscode-languageclient/node';

/** The button by which code is sent to a language model (docs/protocol.md). */
const SEND = 'Send';

/** Whether code may be sent is asked in a dialog: a message would go behind the bell, and the job wait there for ever. */
async function ask({ message, actions = [] }: ShowMessageRequestParams): Promise<MessageActionItem | null> {
  const titles = actions.map((action) => action.title);
  const [first, ...others] = message.split('\n');
  const chosen = titles.includes(SEND)
    ? await vscode.window.showInformationMessage(first, { modal: true, detail: others.join('\n') }, ...titles)
    : await vscode.window.showInformationMessage(message, ...titles);
  return actions.find((action) => action.title === chosen) ?? null;
}

/** For a client that is started: its own way to ask is set then. */
export const askInDialogs = (client: LanguageClient): vscode.Disposable => client.onRequest(ShowMessageRequest.type, ask);
