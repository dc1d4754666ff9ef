// Runs inside VS Code's extension host, with the real `vscode` module: one user's session with a kernel.
const assert = require('node:assert/strict');
const vscode = require('vscode');

const run = vscode.commands.executeCommand;

/** Waits until `probe` gives something true. */
async function until(what, probe, seconds = 20) {
  const end = Date.now() + 1000 * seconds;
  for (;;) {
    const value = await probe();
    if (value) return value;
    if (Date.now() > end) throw new Error(`${what}: not within ${seconds} s`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const file = vscode.Uri.joinPath(vscode.workspace.workspaceFolders[0].uri, 'scale.cu');
let document;
let editor;

const titles = async () => (await run('vscode.executeCodeLensProvider', file, 20)).map((lens) => lens.command?.title ?? '');
const lens = (word, seconds) => until(`a lens with "${word}"`, async () => (await titles()).find((title) => title.includes(word)), seconds);
const positionOf = (word, after = 0) => document.positionAt(document.getText().indexOf(word) + after);
const errors = () => vscode.languages.getDiagnostics(file).filter((one) => one.severity === vscode.DiagnosticSeverity.Error);
const tabs = () => vscode.window.tabGroups.all.flatMap((group) => group.tabs);
const diffTab = () => tabs().find((tab) => tab.input instanceof vscode.TabInputTextDiff);

/** What the user sees of the diff's right side. */
async function openReview() {
  await vscode.window.showTextDocument(document);
  editor.selection = new vscode.Selection(positionOf('scale_add'), positionOf('scale_add'));
  await run('cuda-lsp.client.review');
  const tab = await until('a diff tab', diffTab);
  assert.equal(tab.input.original.toString(), file.toString());
  return vscode.workspace.openTextDocument(tab.input.modified);
}

const steps = {
  async 'the file is CUDA and the server attaches'() {
    document = await vscode.workspace.openTextDocument(file);
    editor = await vscode.window.showTextDocument(document);
    assert.equal(document.languageId, 'cuda-cpp');
    await lens('Optimize');
  },
  async 'a lens says what the kernel costs'() {
    const title = await lens('registers');
    assert.match(title, /^\d+ registers, .*occupancy \d+ %/);
  },
  async 'hover says the signature and the workload'() {
    const where = positionOf('scale_add', 2);
    await until('hover', async () => {
      const hovers = await run('vscode.executeHoverProvider', file, where);
      const words = hovers.flatMap((hover) => hover.contents).map((content) => content.value).join('\n');
      return words.includes('scale_add(const float* x, float* y') && words.includes('rows=4096');
    });
  },
  async 'the outline lists the kernel and its launch'() {
    const symbols = await run('vscode.executeDocumentSymbolProvider', file);
    assert.deepEqual(symbols.map((symbol) => symbol.name), ['scale_add', 'scale_add<<<grid, block>>>']);
  },
  async 'the compiler is heard where the fault is, and no longer after undo'() {
    const before = document.getText();
    const line = positionOf('y[row * cols').line;
    await editor.edit((edit) => edit.insert(new vscode.Position(line, 0), '        /* é */ nowhere = 1;\n'));
    const [fault] = await until('a diagnostic', () => errors().length && errors(), 30);
    assert.match(fault.message, /nowhere/);
    // The compiler names the line; its columns are counted in UTF-16 here.
    assert.equal(document.getText(fault.range), '/* é */ nowhere = 1;');
    await run('undo');
    assert.equal(document.getText(), before);
    await until('no diagnostic', () => errors().length === 0, 30);
  },
  async 'the menu offers three widths of optimizing'() {
    const actions = await run('vscode.executeCodeActionProvider', file, new vscode.Range(positionOf('int row ='), positionOf('int row =')));
    const optimize = actions.filter((action) => action.command?.command === 'cuda-lsp.optimize');
    assert.deepEqual(optimize.map((action) => action.command.arguments[1].scope), ['drop-in', 'relaunch', 'plan']);
  },
  async 'a command starts a job and answers with its id; the lens says so'() {
    const lenses = await run('vscode.executeCodeLensProvider', file, 20);
    const { command } = lenses.find((one) => one.command.command === 'cuda-lsp.optimize');
    const id = await run(command.command, ...command.arguments);
    assert.equal(typeof id, 'string');
    await lens('(cancel)');
  },
  async 'a proposal is ready for review'() {
    assert.match(await lens('Review', 90), /verified|right/);
  },
  async 'the review is a diff, with the verdict, and writes nothing'() {
    const before = document.getText();
    const right = await openReview();
    assert.notEqual(right.getText(), before);
    assert.match(right.getText(), /int row = blockIdx.x \* blockDim.x \+ threadIdx.y;/);
    assert.equal(right.languageId, 'cuda-cpp');
    assert.equal(document.getText(), before);
    assert.equal(document.isDirty, false);
  },
  async 'accept writes exactly what was shown, closes the diff, and one undo takes it back'() {
    const before = document.getText();
    const right = await vscode.workspace.openTextDocument(diffTab().input.modified);
    const promised = right.getText();
    await run('cuda-lsp.client.accept', right.uri);
    await until('the promised text', () => document.getText() === promised);
    await until('the diff to close', () => !diffTab());
    await vscode.window.showTextDocument(document);
    await run('undo');
    assert.equal(document.getText(), before);
  },
  async 'reject asks why, closes the diff and writes nothing'() {
    const before = document.getText();
    await lens('Review');
    const right = await openReview();
    const rejected = run('cuda-lsp.client.reject', right.uri);
    await until('the question to be answered', async () => {
      await run('workbench.action.acceptSelectedQuickOpenItem');
      return !diffTab();
    });
    await rejected;
    assert.equal(document.getText(), before);
    await until('the lens to offer it no longer', async () => !(await titles()).some((title) => title.includes('Review')));
  },
  async 'a job is cancelled from its lens'() {
    const optimize = (await run('vscode.executeCodeLensProvider', file, 20)).find((one) => one.command.command === 'cuda-lsp.optimize');
    await run(optimize.command.command, ...optimize.command.arguments);
    const cancel = await until('a lens to cancel', async () =>
      (await run('vscode.executeCodeLensProvider', file, 20)).find((one) => one.command.command === 'cuda-lsp.cancel'));
    assert.equal(await run(cancel.command.command, ...cancel.command.arguments), true);
    await lens('Optimize', 15);
  },
  async 'the server restarts, and serves again'() {
    await run('cuda-lsp.client.restart');
    await lens('Optimize');
  },
};

exports.run = async () => {
  for (const [name, step] of Object.entries(steps)) {
    try {
      await step();
      console.log(`[suite] ok   ${name}`);
    } catch (error) {
      console.log(`[suite] FAIL ${name}\n${error.stack}`);
      throw error; // each step stands on the ones before
    }
  }
};
