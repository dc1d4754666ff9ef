// node screen.mjs URL WORKSPACE OUT
// VS Code as a user sees it: real keys and clicks in Chromium, and pictures of what stands on the screen.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { open } from './browser.mjs';

const [url, workspace, out] = process.argv.slice(2);
const pictures = process.env.PICTURES ?? out;
const { context, page } = await open();
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
const photograph = (name) => page.screenshot({ path: join(pictures, name) });
const content = async (where) => (await where.locator('.view-line').allInnerTexts()).join('\n').replaceAll('\u00a0', ' ');

/** Picks the row with exactly this label: Enter would run whatever stands first. */
async function palette(label) {
  await page.keyboard.press('F1');
  await page.locator('.quick-input-widget input:visible').first().fill(`>${label}`);
  const row = page.locator('.quick-input-list .monaco-list-row').filter({ has: page.getByText(label, { exact: true }) });
  await row.first().click();
}

async function steps() {
  await step('a CUDA file opens', async () => {
    await page.goto(`${url}/?folder=${encodeURIComponent(workspace)}`);
    await page.locator('.explorer-folders-view .monaco-list-row', { hasText: 'scale.cu' }).first().dblclick();
    await editor.locator('.view-line', { hasText: 'scale_add' }).first().waitFor();
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
  await step('a click on Optimize starts a job that can be cancelled', async () => {
    await lens('Optimize').click();
    await lens('(cancel)').waitFor();
  });
  await step('a message offers the review, and the lens too', async () => {
    await page.locator('.notification-toast', { hasText: 'same precision' }).first().waitFor({ timeout: 90_000 });
    await lens('Review').waitFor();
    await photograph('vscode-lens.png');
  });
  const diff = page.locator('.monaco-diff-editor');
  await step('a click on Review opens the diff with the verdict', async () => {
    await page.locator('.notification-toast').getByRole('button', { name: 'Later' }).first().click();
    await lens('Review').click();
    await diff.locator('.editor.modified .char-insert, .editor.modified .line-insert').first().waitFor();
    const comment = page.locator('.review-widget');
    await comment.getByText(/^right \(emulated.*same precision.*est\. \d\.\d+x/).first().waitFor();
    await comment.getByText('Evidence').click();
    await comment.getByText(/^correctness: passed/).first().waitFor();
    await comment.getByText('Evidence').click();
    await page.waitForTimeout(500); // the diff scrolls to its first change
    await photograph('vscode-review.png');
  });
  await step('Reject asks for a reason and closes the diff', async () => {
    const before = readFileSync(join(workspace, 'scale.cu'), 'utf8');
    await page.locator('.editor-actions').getByRole('button', { name: 'Reject' }).click();
    await page.locator('.quick-input-widget input:visible').first().fill('too clever');
    await page.keyboard.press('Enter');
    await diff.waitFor({ state: 'detached' });
    if (readFileSync(join(workspace, 'scale.cu'), 'utf8') !== before) throw new Error('the file was written');
    await lens('Review').waitFor({ state: 'detached' });
  });
  await step('Accept in another review writes the rewrite', async () => {
    await editor.locator('.view-line', { hasText: 'int row =' }).first().click();
    await palette('CUDA: Optimize This Kernel');
    await page.locator('.quick-input-list .monaco-list-row', { hasText: 'the launch may change' }).click();
    await lens('Review').waitFor({ timeout: 90_000 });
    await lens('Review').click();
    await diff.locator('.editor.modified .view-line').first().waitFor();
    await page.locator('.editor-actions').getByRole('button', { name: 'Accept' }).click();
    await diff.waitFor({ state: 'detached' });
    const text = await content(editor);
    if (!text.includes('blockDim.x + threadIdx.y;')) throw new Error(text);
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
