// node host.mjs URL WORKSPACE EXTENSION SUITE OUT
// Runs SUITE inside the extension host of a running code-server, where the real `vscode` module is. The workbench reads
// which suite to run from the page's address, and reports through two functions on the page.
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { open } from './browser.mjs';

const [url, workspace, extension, suite, out] = process.argv.slice(2);
const inEditor = (path) => `vscode-remote://${new URL(url).host}${path}`;
const { context, page } = await open();

let finish;
const finished = new Promise((resolve) => { finish = resolve; });
await page.exposeFunction('codeAutomationExit', (code) => finish(code === 0));
await page.exposeFunction('codeAutomationLog', (_kind, parts) => {
  const line = parts.map((part) => (typeof part === 'string' ? part : JSON.stringify(part))).join(' ');
  appendFileSync(join(out, 'host-console.log'), `${line}\n`);
  const mine = line.match(/\[suite\] ([^]*)/);
  if (mine) console.log(mine[1]);
});
// The suite's address is read only when the smoke-test driver is on, for which code-server has no flag. The page's own
// configuration has one: it is set after the page is parsed and before the workbench's script runs.
await page.addInitScript(() => document.addEventListener('readystatechange', () => {
  const meta = document.getElementById('vscode-workbench-web-configuration');
  if (document.readyState !== 'interactive' || !meta) return;
  const settings = JSON.parse(meta.dataset.settings);
  settings.developmentOptions = { ...settings.developmentOptions, enableSmokeTestDriver: true };
  meta.dataset.settings = JSON.stringify(settings);
}));

const payload = [['extensionDevelopmentPath', inEditor(extension)], ['extensionTestsPath', inEditor(suite)]];
await page.goto(`${url}/?folder=${encodeURIComponent(workspace)}&payload=${encodeURIComponent(JSON.stringify(payload))}`);
const limit = new Promise((resolve) => setTimeout(resolve, 270_000, 'timeout'));
const result = await Promise.race([finished, limit]);
if (result === 'timeout') {
  await page.screenshot({ path: join(out, 'host-timeout.png') });
  console.log('FAIL the suite ended within 270 s');
}
await context.close();
process.exit(result === true ? 0 : 1);
