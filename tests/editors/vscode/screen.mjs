// node screen.mjs URL WORKSPACE OUT
// VS Code as a user sees it: real keys and clicks in Chromium, and pictures of what stands on the screen.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { open } from './browser.mjs';

const [url, workspace, out] = process.argv.slice(2);
const pictures = process.env.PICTURES ?? out;
const { context, page } = await open(1440, 760);
let failed = 0;

async function step(name, work) {
  try {
    await work();
    console.log(`ok   screen: ${name}`);
  } catch (error) {
    failed += 1;
    await page.screenshot({ path: join(out, 'screen-failure.png') });
    console.log(`FAIL screen: ${name}\n${error.stack}`);
    throw error; // each step stands on the ones before
  }
}

const editor = page.locator('.editor-instance .monaco-editor').first();
const lens = (text) => editor.locator('.codelens-decoration a', { hasText: text }).first();
const photograph = async (name) => {
  await page.mouse.move(700, 650); // no button is to show its name
  await page.waitForTimeout(500);
  await page.screenshot({ path: join(pictures, name) });
};

/** Picks the row with exactly this label: Enter would run whatever stands first. */
async function palette(label) {
  await page.keyboard.press('F1');
  await page.locator('.quick-input-widget input:visible').first().fill(`>${label}`);
  const row = page.locator('.quick-input-list .monaco-list-row').filter({ has: page.getByText(label, { exact: true }) });
  await row.first().click();
}

const toast = (text) => page.locator('.notification-toast', { hasText: text }).first();
const dismiss = async (...words) => {
  for (const word of words) await toast(word).waitFor({ timeout: 90_000 });
  // The button is there while the mouse is over the message, which moves when another comes or goes.
  for (let i = 0; i < 10 && await toast(words[0]).count(); i += 1) {
    await toast(words[0]).hover({ timeout: 5_000 }).catch(() => undefined);
    const clear = toast(words[0]).locator('.codicon-notifications-clear').first();
    if (await clear.click({ timeout: 3_000 }).then(() => true, () => false)) return;
  }
};
const press = (text, button) => toast(text).getByRole('button', { name: button }).first().click();
/** Answers the dialog that says what would be sent to the language model. */
const consent = async (button) => {
  const dialog = page.locator('.monaco-dialog-box', { hasText: 'the device code of scale_add' });
  await dialog.waitFor();
  await page.screenshot({ path: join(out, 'consent.png') });
  await dialog.getByRole('button', { name: button, exact: true }).click();
};
const line = (text) => editor.locator('.view-line', { hasText: text }).first();
const entry = (text) => page.locator('.action-widget .monaco-list-row', { hasText: text }).first();
const pick = (text) => page.locator('.quick-input-list .monaco-list-row', { hasText: text }).first().click();
const saved = () => readFileSync(join(workspace, 'scale.cu'), 'utf8');
const diff = page.locator('.monaco-diff-editor');
const ACCESS = 'y[row * cols + col] = a * x[row * cols + col];';
const original = saved();

/** Saves until the file is a text, byte for byte: what the editor was asked for may come a moment later. */
async function holds(text) {
  for (let i = 0; i < 40; i += 1) {
    await page.keyboard.press('Control+S');
    await page.waitForTimeout(250);
    if (saved() === text && !await page.locator('.tab.active.dirty').count()) return;
  }
  throw new Error(`the file is\n${saved()}`);
}

/** The words typed into the box that the editor opened. */
async function answer(text, prompt) {
  const box = page.locator('.quick-input-widget').filter({ hasText: prompt });
  await box.locator('input:visible').first().fill(text);
  await page.keyboard.press('Enter');
}

/** Asks for a menu until it is there: one closes where what stands in the editor is drawn anew under it. */
async function opened(ask, first) {
  for (let i = 0; i < 10; i += 1) {
    await ask();
    if (await first.waitFor({ timeout: 5_000 }).then(() => true, () => false)) return;
    await page.keyboard.press('Escape');
  }
}

async function openReview() {
  await lens('Review').click();
  await diff.locator('.editor.modified .char-insert, .editor.modified .line-insert').first().waitFor();
}

async function steps() {
  await step('a CUDA file opens', async () => {
    await page.goto(`${url}/?folder=${encodeURIComponent(workspace)}`);
    await page.locator('.explorer-folders-view .monaco-list-row', { hasText: 'scale.cu' }).first().dblclick();
    await line('scale_add').waitFor();
    await page.keyboard.press('Control+B'); // the side bar leaves its room to the diff
    await page.locator('#status\\.editor\\.mode', { hasText: 'CUDA C++' }).waitFor();
  });
  await step('the lens stands over the kernel', async () => {
    await lens('registers').waitFor();
    await lens('Optimize').waitFor();
  });
  await step('a hint underlines what is slow', async () => {
    await editor.locator('.squiggly-hint, .squiggly-info, .squiggly-warning').first().waitFor();
  });
  await step('and a counted fact stands at the end of its line', async () => {
    await line(`${ACCESS}16 sectors per request (4 would do)`.replaceAll(' ', '\u00a0')).waitFor({ timeout: 120_000 });
  });
  await step('quick fixes are behind Ctrl+., and one undo takes one back', async () => {
    await line('y[row').click({ position: { x: 90, y: 8 } });
    await opened(() => page.keyboard.press('Control+.'), entry('Silence M3 on this line'));
    await entry('Verify and apply index-exchange to scale_add').waitFor();
    await entry('Silence M3 on this line').click();
    await holds(original.replace(`        ${ACCESS}`, `        // cuda-lsp: ignore[M3]\n        ${ACCESS}`));
    await page.keyboard.press('Control+Z');
    await holds(original);
  });
  await step('the refactoring menu has all entries, and says why one cannot be taken', async () => {
    await line('int row =').click();
    await opened(() => palette('Refactor...'), entry('Suggest ideas'));
    for (const word of ['Suggest ideas', 'idea of my own', 'same launch', 'the launch may change', 'several kernels',
      'against the saved file', 'against HEAD', 'Benchmark', 'Write the workload']) await entry(word).waitFor();
    await page.locator('.action-widget').getByText('Show Disabled').click();
    await entry('Review the rewrite').and(page.locator('.option-disabled')).waitFor();
    await page.keyboard.press('Escape');
    await palette('CUDA: Review a Proposal for This Kernel');
    await dismiss('no rewrite of scale_add was proposed yet: optimize it first');
  });
  await step('Benchmark says what is missing, and estimates', async () => {
    await palette('CUDA: Benchmark This Kernel');
    await dismiss('nothing can be measured here', 'Estimated on H200');
  });
  await step('Verify finds a wrong change out', async () => {
    await line('y[row').click();
    await page.keyboard.press('End');
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.type('+1.0f');
    await palette('CUDA: Verify My Change of This Kernel');
    await pick('against the saved file');
    await dismiss('scale_add against the saved file: wrong');
    if (saved() !== original) throw new Error('verifying wrote the file');
    await line('int row =').click();
    await page.keyboard.press('Control+Z');
    await holds(original);
  });
  await step('against HEAD it finds out what was saved, and against the saved file nothing', async () => {
    await line('y[row').click();
    await page.keyboard.press('End');
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.type('+1.0f');
    await holds(original.replace(ACCESS, ACCESS.replace(';', '+1.0f;')));
    await palette('CUDA: Verify My Change of This Kernel');
    await pick('against the saved file');
    await dismiss('scale_add: the text in the editor is the saved file: there is no change to verify');
    await palette('CUDA: Verify My Change of This Kernel');
    await pick('against HEAD');
    await dismiss('scale_add against the file at HEAD: wrong');
    await line('int row =').click();
    await page.keyboard.press('Control+Z');
    await holds(original);
    await palette('CUDA: Verify My Change of This Kernel');
    await pick('against HEAD');
    await dismiss('scale_add: the text in the editor is the file at HEAD: there is no change to verify');
  });
  await step('an idea that was suggested is tried, with its progress in sight', async () => {
    await line('int row =').click();
    await palette('CUDA: Suggest Ideas for This Kernel');
    await toast('waiting for your answer: may scripted be asked?').waitFor();
    await consent('Never in this project');
    await dismiss('in this project scripted is not asked, ideas come from the catalogue alone');
    await toast('exchange threadIdx.x and threadIdx.y').waitFor({ timeout: 90_000 });
    await press('exchange threadIdx.x and threadIdx.y', 'Try index-exchange');
    await toast('Optimizing scale_add').waitFor();
    await lens('(cancel)').waitFor();
  });
  await step('a message offers the review, and the lens too', async () => {
    await toast('same precision').waitFor({ timeout: 90_000 });
    await lens('Review').waitFor();
    await photograph('vscode-lens.png');
  });
  await step('a click on Review opens the diff with the verdict', async () => {
    await press('same precision', 'Later');
    await openReview();
    const comment = page.locator('.review-widget');
    await comment.getByText(/^right \(emulated.*same precision.*est\. \d\.\d+x/).first().waitFor();
    await comment.getByText('Evidence').click();
    await comment.getByText(/^correctness: passed/).first().waitFor();
    await comment.getByText('Evidence').click();
    await photograph('vscode-review.png');
  });
  await step('Reject asks for a reason, closes the diff and writes nothing', async () => {
    await page.locator('.editor-actions').getByRole('button', { name: 'Reject' }).click();
    await answer('too clever', 'Why?');
    await diff.waitFor({ state: 'detached' });
    await holds(original);
    await lens('Review').waitFor({ state: 'detached' });
  });
  await step('a key is asked for in a box that hides it', async () => {
    await palette('CUDA: Set the API Key of Your Language Model');
    const box = page.locator('.quick-input-widget').filter({ hasText: 'The key of your language model' });
    await box.locator('input[type=password]:visible').fill(process.env.MODEL_KEY);
    await page.keyboard.press('Enter');
    await dismiss('the language server has the key now');
    await lens('Optimize').waitFor();
  });
  await step('an idea of my own goes to the model once I agree', async () => {
    await line('int row =').click();
    await palette('CUDA: Try My Own Idea on This Kernel');
    await answer('swap the indices', 'Your idea for scale_add');
    await page.locator('.monaco-dialog-box', { hasText: 'Your key from CUDA_LSP_API_KEY' }).waitFor();
    await consent('Send');
    await lens('Review').waitFor({ timeout: 120_000 });
  });
  await step('Accept writes exactly what was shown, and one undo takes it back', async () => {
    await press('same precision', 'Later');
    await openReview();
    await page.locator('.editor-actions').getByRole('button', { name: 'Accept' }).click();
    await diff.waitFor({ state: 'detached' });
    await holds(original.replace('int row = blockIdx.x * blockDim.x + threadIdx.x', 'int swapped = blockIdx.x * blockDim.x + threadIdx.y')
      .replace('blockDim.y + threadIdx.y', 'blockDim.y + threadIdx.x').replace('row < rows', 'swapped < rows')
      .replaceAll('[row *', '[swapped *'));
    await page.keyboard.press('Control+Z');
    await holds(original);
  });
  await step('an answer is taken back, and once the model is allowed it has ideas too', async () => {
    await line('int row =').click();
    await palette('CUDA: Ask Again Before Code Is Sent to a Language Model');
    await dismiss('your answers are forgotten');
    await palette('CUDA: Suggest Ideas for This Kernel');
    await consent('Always in this project');
    await dismiss('in this project scripted may be asked');
    await dismiss('walk straight on (idea from scripted)');
  });
  await step('a job is cancelled by the button at its progress', async () => {
    await line('int row =').click();
    await palette('CUDA: Optimize This Kernel');
    await pick('it may become several kernels');
    await toast('Optimizing scale_add').waitFor();
    await press('Optimizing scale_add', 'Cancel');
    await toast('Optimizing scale_add').waitFor({ state: 'detached' });
    await lens('Optimize').waitFor();
    await holds(original);
  });
}

page.setDefaultTimeout(30_000);
try {
  await steps();
} catch {
  // said already
}
await context.close();
process.exit(failed ? 1 : 0);
