import * as vscode from 'vscode';
import {
  LanguageClient, RevealOutputChannelOn, State, TransportKind, type ExecutableOptions, type LanguageClientOptions,
  type Middleware, type ServerOptions, type StaticFeature,
} from 'vscode-languageclient/node';
import { askInDialogs } from './questions';

/** CUDA as VS Code names it, as older extensions and other editors name it, and as a user may have mapped it to C++. */
export const selector = [
  { language: 'cuda-cpp' },
  { language: 'cuda' },
  { language: 'cpp', pattern: '**/*.{cu,cuh}' },
].flatMap((filter) => ['file', 'untitled'].map((scheme) => ({ ...filter, scheme })));

export const isCuda = (document: vscode.TextDocument): boolean => vscode.languages.match(selector, document) > 0;

/** Settings of the section that are the extension's own: the server is not told them. */
const ours = ['command', 'trace'];

const configuration: NonNullable<Middleware['workspace']>['configuration'] = async (params, token, next) => {
  const answer = await next(params, token);
  if (!Array.isArray(answer)) return answer;
  return answer.map((section) =>
    section && typeof section === 'object'
      ? Object.fromEntries(Object.entries(section).filter(([key]) => !ours.includes(key)))
      : section);
};

/** Says that proposals are shown by this extension, as a diff, and that it lets the user type a text. */
const announced: StaticFeature = {
  fillClientCapabilities: (capabilities) => {
    capabilities.experimental = { ...capabilities.experimental as object, cudaLsp: { review: true, askText: true } };
  },
  initialize: () => {},
  getState: () => ({ kind: 'static' }),
  clear: () => {},
};

/** What the server asks for in words: an idea of the user's own. */
async function askText({ title, prompt }: { title: string; prompt: string }): Promise<{ text: string } | null> {
  const text = await vscode.window.showInputBox({ title, prompt, ignoreFocusOut: true });
  return text ? { text } : null;
}

/** A client for `cuda-lsp serve`, not yet started. `env` is for that process alone. */
export function createClient(
  log: vscode.LogOutputChannel, middleware: Middleware, env: NodeJS.ProcessEnv,
): LanguageClient {
  const [command, ...args] = vscode.workspace.getConfiguration('cuda-lsp').get<string[]>('command', []);
  const options: ExecutableOptions = { env: { ...process.env, ...env } };
  const server: ServerOptions = { command: command || 'cuda-lsp', args, options, transport: TransportKind.stdio };
  const clientOptions: LanguageClientOptions = {
    documentSelector: selector,
    outputChannel: log,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    middleware: { ...middleware, workspace: { configuration } },
  };
  const client = new LanguageClient('cuda-lsp', 'cuda-lsp', server, clientOptions);
  client.registerFeature(announced);
  client.onRequest('cuda-lsp/askText', askText);
  return client;
}

/** Starts the client; where that fails, says which program was tried and offers the two ways on. */
export async function start(client: LanguageClient, log: vscode.LogOutputChannel): Promise<void> {
  try {
    await client.start();
    askInDialogs(client);
  } catch (error) {
    log.error(String(error));
    void explain(log);
  }
}

async function explain(log: vscode.LogOutputChannel): Promise<void> {
  const command = vscode.workspace.getConfiguration('cuda-lsp').get<string[]>('command', []).join(' ');
  const choice = await vscode.window.showErrorMessage(
    `cuda-lsp: the language server did not start with "${command}". Install it with: pip install "cuda-lsp[cuda13]", `
    + 'or name its program in the setting cuda-lsp.command.',
    'Open Settings', 'Show Log',
  );
  if (choice === 'Open Settings') {
    await vscode.commands.executeCommand('workbench.action.openSettings', 'cuda-lsp.command');
  } else if (choice === 'Show Log') {
    log.show();
  }
}

/** Ends a client in whatever state it is: one that never came up cannot be asked to stop. */
export async function stop(client: LanguageClient): Promise<void> {
  if (client.state === State.Running) await client.stop();
  await client.dispose();
}
