import * as vscode from 'vscode';

/** How the server is told (docs/models.md): by the environment, which is in no settings file and no log. */
const VARIABLE = 'CUDA_LSP_API_KEY';
const SECRET = 'apiKey';

/** The key of a language model, kept in the editor's own secret storage. */
export class ApiKey {
  constructor(private readonly secrets: vscode.SecretStorage) {}

  /** Told when it was set or forgotten, here or in another window. */
  onDidChange(listener: () => unknown): vscode.Disposable {
    return this.secrets.onDidChange(({ key }) => void (key === SECRET && listener()));
  }

  /** What the server's process is given beside the editor's own environment. */
  async environment(): Promise<NodeJS.ProcessEnv> {
    const key = await this.secrets.get(SECRET);
    return key ? { [VARIABLE]: key } : {};
  }

  register(): vscode.Disposable[] {
    return [
      vscode.commands.registerCommand('cuda-lsp.client.setApiKey', () => this.ask()),
      vscode.commands.registerCommand('cuda-lsp.client.forgetApiKey', () => this.secrets.delete(SECRET)),
    ];
  }

  private async ask(): Promise<void> {
    const key = await vscode.window.showInputBox({
      title: 'The key of your language model',
      prompt: 'Kept in the secret storage of the editor, and sent only to the endpoint that .cuda-lsp.toml names',
      password: true,
      ignoreFocusOut: true,
    });
    if (key?.trim()) await this.secrets.store(SECRET, key.trim());
  }
}
