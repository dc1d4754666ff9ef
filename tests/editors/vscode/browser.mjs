// Debian's Chromium, headless, driven by Playwright from the folder that `install` made.
import { mkdtempSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const { chromium } = createRequire(join(process.env.EDITORS, 'driver', 'package.json'))('playwright-core');

// As root Chromium refuses its sandbox; everything it opens here is our own code-server on the loopback address.
const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];

/** A browser with an empty profile and one page. */
export async function open(width = 1280, height = 720) {
  const context = await chromium.launchPersistentContext(mkdtempSync(join(process.env.EDITORS, 'run', 'chromium-')), {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    viewport: { width, height },
    args: flags,
  });
  return { context, page: context.pages()[0] ?? (await context.newPage()) };
}
