import { AxeBuilder } from '@axe-core/playwright';
import { chromium, type Browser, type Page } from 'playwright-core';
import { expect } from 'vitest';

/** Where Debian puts it; `CHROMIUM` names another one. */
const EXECUTABLE = process.env['CHROMIUM'] ?? '/usr/bin/chromium';

/** How a page is looked at. */
export interface View {
  /** Pixels of CSS. @default 1280 */
  readonly width?: number;
  /** @default 900 */
  readonly height?: number;
  /** @default light */
  readonly scheme?: 'light' | 'dark';
}

/** A desktop, and the phone on which people look when they are woken. */
export const VIEWS = {
  desktop: { width: 1280, height: 900 },
  phone: { width: 390, height: 844 },
} as const;

/** A real Chromium, and everything that its pages complain of. */
export interface RealBrowser {
  open(view?: View): Promise<Page>;
  /** Errors of scripts, and what the page's own policy refused. */
  readonly complaints: readonly string[];
  close(): Promise<void>;
}

/** Starts Chromium. */
export async function startBrowser(): Promise<RealBrowser> {
  const browser: Browser = await chromium.launch({
    executablePath: EXECUTABLE,
    args: ['--no-sandbox', '--disable-background-networking'],
  });
  const complaints: string[] = [];
  return {
    complaints,
    async open({ width = 1280, height = 900, scheme = 'light' } = {}) {
      const context = await browser.newContext({
        viewport: { width, height },
        colorScheme: scheme,
        permissions: ['clipboard-read', 'clipboard-write'],
      });
      const page = await context.newPage();
      page.on('pageerror', (error) => complaints.push(error.message));
      page.on('console', (message) => {
        const text = message.text();
        // Answers such as 401 and 422 are expected here, and Chromium reports each as an error.
        if (message.type() === 'error' && !text.startsWith('Failed to load resource')) {
          complaints.push(text);
        }
      });
      return page;
    },
    close: () => browser.close(),
  };
}

/** Rules of WCAG 2.2 at levels A and AA, as far as axe can check them, and what it holds to be good practice. */
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** Expects that axe finds nothing on the page, seen from its top: elsewhere a button that is half under its head counts as small. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(() => window.scrollTo({ top: 0, behavior: 'instant' }));
  const { violations } = await new AxeBuilder({ page }).withTags(RULES).analyze();
  const bad = violations.map(({ id, nodes }) => ({
    id,
    where: nodes.slice(0, 5).map(({ html }) => html),
  }));
  expect(bad).toEqual([]);
}

/** Expects that nothing makes the whole page scroll sideways. */
export async function expectNoSidewaysScroll(page: Page): Promise<void> {
  const overflow = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  expect(overflow).toBe(0);
}
