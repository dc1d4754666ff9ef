// Runs inside VS Code's extension host, with the real `vscode` module: one user's session with a kernel.
const assert = require('node:assert/strict');
const { readFileSync, readdirSync } = require('node:fs');
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

const sample = (name) => vscode.Uri.joinPath(vscode.workspace.workspaceFolders[0].uri, name);
let file = sample('scale.cu');
const ACCESS = 'y[row * cols + col] = a * x[row * cols + col];';
const DIRECTIVE = `\
// cuda-lsp: workload
//   size     rows = 4096, cols = 4096
//   buffer   x: f32[rows * cols] in
//   buffer   y: f32[rows * cols] out
//   launch   scale_add<<<dim3((rows + 15) / 16, (cols + 15) / 16), dim3(16, 16)>>>(x, y, 2.0f, rows, cols)
`;
let document;
let editor;

const titles = async () => (await run('vscode.executeCodeLensProvider', file, 20)).map((lens) => lens.command?.title ?? '');
const lens = (word, seconds) => until(`a lens with "${word}"`, async () => (await titles()).find((title) => title.includes(word)), seconds);
const noLens = (word) => until(`no lens with "${word}"`, async () => !(await titles()).some((title) => title.includes(word)));
const positionOf = (word, after = 0) => document.positionAt(document.getText().indexOf(word) + after);
const at = (word) => new vscode.Range(positionOf(word), positionOf(word));
const diagnostics = (code) => vscode.languages.getDiagnostics(file).filter((one) => (one.code?.value ?? one.code) === code);
const errors = () => vscode.languages.getDiagnostics(file).filter((one) => one.severity === vscode.DiagnosticSeverity.Error);
const tabs = () => vscode.window.tabGroups.all.flatMap((group) => group.tabs);
const diffTab = () => tabs().find((tab) => tab.input instanceof vscode.TabInputTextDiff);
const actions = (word, kind) => run('vscode.executeCodeActionProvider', file, at(word), kind, 50);
const put = (where, text) => editor.edit((edit) => edit.insert(where, text));

/** Puts the cursor into the kernel. */
async function enter(kernel = 'scale_add') {
  editor = await vscode.window.showTextDocument(document);
  editor.selection = new vscode.Selection(positionOf(kernel), positionOf(kernel));
}

async function undo(before) {
  await vscode.window.showTextDocument(document);
  await run('undo');
  assert.equal(document.getText(), before);
}

/** What the user sees of the diff's right side. */
async function openReview(kernel) {
  await enter(kernel);
  await run('cuda-lsp.client.review');
  const tab = await until('a diff tab', diffTab);
  assert.equal(tab.input.original.toString(), file.toString());
  return vscode.workspace.openTextDocument(tab.input.modified);
}

/** Starts the job behind an action and gives its id. */
async function begin(title, word = 'int row =', options = {}) {
  const found = (await actions(word, 'refactor.rewrite.cuda')).find((action) => action.title.includes(title));
  const [kernel, given] = found.command.arguments;
  const id = await run(found.command.command, kernel, { ...given, ...options });
  assert.equal(typeof id, 'string');
  return id;
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
  async 'a counted fact stands at the end of its line, and moves with it'() {
    const whole = () => new vscode.Range(0, 0, document.lineCount, 0);
    const hint = () => until('an inlay hint', async () =>
      (await run('vscode.executeInlayHintProvider', file, whole()))
        .find((one) => one.label === '16 sectors per request (4 would do)'), 120);
    const { position, tooltip } = await hint();
    assert.deepEqual(position, document.lineAt(positionOf(ACCESS).line).range.end);
    assert.match(tooltip.value ?? tooltip, /counted in the emulator: 9 blocks of 16x16 threads/);
    const before = document.getText();
    await put(new vscode.Position(0, 0), '// one line more 🚀\n');
    await until('the hint one line below', async () => (await hint()).position.line === position.line + 1);
    await undo(before);
  },
  async 'the compiler is heard where the fault is, and no longer after undo'() {
    const before = document.getText();
    await put(new vscode.Position(positionOf(ACCESS).line, 0), '        /* é */ nowhere = 1;\n');
    const [fault] = await until('a diagnostic', () => errors().length && errors(), 30);
    assert.match(fault.message, /nowhere/);
    // The compiler names the line; its columns are counted in UTF-16 here.
    assert.equal(document.getText(fault.range), '/* é */ nowhere = 1;');
    await undo(before);
    await until('no diagnostic', () => errors().length === 0, 30);
  },
  async 'the menu has kinds in a hierarchy and three scopes'() {
    const all = await actions('int row =', 'refactor.rewrite.cuda');
    const kinds = new Set(all.map((action) => action.kind.value.replace('refactor.rewrite.cuda.', '')));
    assert.deepEqual([...kinds].sort(), ['ask', 'check', 'code', 'describe', 'optimize'], 'there is nothing to review');
    const optimize = await actions('int row =', 'refactor.rewrite.cuda.optimize');
    assert.deepEqual(optimize.map((action) => action.command.arguments[1].scope), ['drop-in', 'relaunch', 'plan']);
  },
  async 'a quick fix mends a hint exactly, and one undo takes it back'() {
    const before = document.getText();
    await put(positionOf(ACCESS).translate(0, ACCESS.length - 1), ' * 0.1');
    const typed = document.getText();
    await until('a hint about double arithmetic', () => diagnostics('A1').length);
    const fixes = await run('vscode.executeCodeActionProvider', file, at('0.1'), 'quickfix', 10);
    const title = 'Verify and apply: Write 0.1f';
    assert.deepEqual(fixes.map((fix) => fix.title).filter((name) => name.includes('0.1f')), [title]);
    const mend = fixes.find((fix) => fix.title === title);
    await run(mend.command.command, ...mend.command.arguments);
    await until('the fix, once it is proved', () => document.getText() === typed.replace('0.1', '0.1f'), 120);
    await undo(typed);
    await undo(before);
  },
  async 'the workload is written above the kernel, and taken back'() {
    const before = document.getText();
    await enter();
    await run('cuda-lsp.client.describeWorkload');
    const expected = before.replace('__global__', `${DIRECTIVE}__global__`);
    await until('the directive', () => document.getText() === expected);
    await undo(before);
  },
  async 'a command starts a job and answers with its id; the lens says so'() {
    await begin('the launch may change');
    await lens('(cancel)');
    assert.deepEqual(await actions('int row =', 'refactor.rewrite.cuda.optimize'), [], 'one job a kernel');
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
    await vscode.window.tabGroups.close(diffTab());
  },
  async 'an edit inside makes it outdated, and accept writes nothing'() {
    const before = document.getText();
    await enter();
    await put(positionOf('int col ='), '// typed inside\n    ');
    await lens('outdated');
    const edited = document.getText();
    await enter();
    await run('cuda-lsp.client.review');
    const tab = await until('the diff as a text', () => tabs().find((one) => one.input?.uri?.scheme === 'cuda-lsp'));
    await run('cuda-lsp.client.accept', tab.input.uri);
    assert.equal(document.getText(), edited);
    await vscode.window.tabGroups.close(tabs().filter((one) => one.input?.uri?.scheme === 'cuda-lsp'));
    await undo(before);
    await lens('right');
  },
  async 'after an edit elsewhere, accept writes exactly what is shown, and one undo takes it back'() {
    const original = document.getText();
    await enter();
    await put(new vscode.Position(0, 0), '// é 🚀 typed after the search\n');
    const before = document.getText();
    const right = await openReview();
    const promised = right.getText();
    assert.ok(promised.startsWith('// é 🚀 typed after the search\n'));
    await run('cuda-lsp.client.accept', right.uri);
    await until('the promised text', () => document.getText() === promised);
    await until('the diff to close', () => !diffTab());
    await undo(before);
    await undo(original);
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
    await noLens('Review');
  },
  async 'a job is cancelled from its lens'() {
    await begin('it may become several kernels');
    const cancel = await until('a lens to cancel', async () =>
      (await run('vscode.executeCodeLensProvider', file, 20)).find((one) => one.command.command === 'cuda-lsp.cancel'));
    assert.equal(await run(cancel.command.command, ...cancel.command.arguments), true);
    await lens('Optimize', 15);
  },
  async 'and from the palette'() {
    await begin('same signature, same launch');
    await lens('(cancel)');
    await enter();
    await run('cuda-lsp.client.cancel');
    await lens('Optimize', 15);
  },
  async 'a rewrite of the host code too is accepted exactly as it is shown, and one undo takes it back'() {
    file = sample('scan.cu');
    document = await vscode.workspace.openTextDocument(file);
    await enter('scan_step');
    await lens('Optimize');
    const original = document.getText();
    const only = { only: ['scan-in-tiles'], rounds: 1, candidates: 1 };
    await begin('it may become several kernels', 'int i =', only);
    await lens('Review', 120);
    await put(document.lineAt(positionOf('printf("scan of').line).range.end, '  // typed inside');
    await lens('outdated');
    await undo(original);
    await lens('right');
    await enter('scan_step');
    await put(new vscode.Position(0, 0), '// é 🚀 typed after the search\n');
    const before = document.getText();
    const right = await openReview('scan_step');
    const promised = right.getText();
    const main = promised.slice(promised.indexOf('int main('));
    assert.ok(main.includes('scan_step_tiles<<<') && main.includes('CHECK(cudaFree(tile_totals));'), main);
    await run('cuda-lsp.client.accept', right.uri);
    await until('the promised text', () => document.getText() === promised);
    await undo(before);
    await undo(original);
  },
  async 'a launch leads to its kernel in another file, and the kernel back to it'() {
    const write = (name, text) => vscode.workspace.fs.writeFile(sample(name), Buffer.from(text));
    const kernel = '#pragma once\n/* é */ __global__ void halve(float* x) { x[threadIdx.x] *= 0.5f; }\n';
    await write('halve.cuh', kernel);
    await write('halves.cu', '#include "halve.cuh"\nint main() {\n    /* 🚀 */ halve<<<1, 32>>>(nullptr);\n}\n');
    const launching = await vscode.workspace.openTextDocument(sample('halves.cu'));
    await vscode.window.showTextDocument(launching);
    const launch = launching.positionAt(launching.getText().indexOf('halve<<<'));
    const found = await until('a definition', async () =>
      (await run('vscode.executeDefinitionProvider', launching.uri, launch))[0], 60);
    const where = found.targetUri ?? found.uri;
    const range = found.targetSelectionRange ?? found.range;
    assert.equal(where.toString(), sample('halve.cuh').toString());
    const defining = await vscode.workspace.openTextDocument(where);
    assert.equal(defining.offsetAt(range.start), kernel.indexOf('halve('));
    assert.equal(defining.getText(range), 'halve');
    const places = await run('vscode.executeReferenceProvider', where, range.start);
    assert.ok(places.some((one) => one.uri.toString() === launching.uri.toString() && one.range.start.isEqual(launch)));
    const [item] = await run('vscode.prepareCallHierarchy', where, range.start);
    const [caller] = await run('vscode.provideIncomingCalls', item);
    assert.equal(caller.from.name, 'main');
  },
  async 'the server restarts, and serves again'() {
    const read = (pid, what) => { try { return readFileSync(`/proc/${pid}/${what}`, 'utf8'); } catch { return ''; } };
    const server = () => readdirSync('/proc').filter((pid) => /^\d+$/.test(pid)
      && read(pid, 'stat').split(') ').pop().split(' ')[1] === String(process.pid)
      && read(pid, 'cmdline').split('\0').includes('serve'));
    const [before] = server();
    await run('cuda-lsp.client.restart');
    await lens('Optimize');
    const after = server();
    assert.equal(after.length, 1, `one server of this window: ${after}`);
    assert.notEqual(after[0], before);
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
