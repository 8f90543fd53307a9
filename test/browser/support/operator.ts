import type { Locator, Page } from 'playwright-core';

/** Clicks and time that a task took. */
export interface Effort {
  readonly clicks: number;
  readonly ms: number;
}

/**
 * An operator at a page, who counts: each press of the mouse or the finger is a click, also the one that goes to a
 * field. A field that has the focus already takes none, and keys are not counted, but take their time.
 */
export class SupportOperator {
  readonly #page: Page;
  readonly #began = performance.now();
  #clicks = 0;

  constructor(page: Page) {
    this.#page = page;
  }

  /** Presses the first of what is meant, as soon as it is there and can be pressed. */
  async click(thing: Locator): Promise<void> {
    this.#clicks += 1;
    await thing.first().click();
  }

  link(name: string | RegExp): Promise<void> {
    return this.click(this.#page.getByRole('link', { name, exact: true }));
  }

  button(name: string | RegExp): Promise<void> {
    return this.click(this.#page.getByRole('button', { name, exact: true }));
  }

  /** Types into a field in place of what stands there. */
  async type(field: Locator, text: string): Promise<void> {
    await field.waitFor();
    const hasFocus = await field.evaluate((element) => element === document.activeElement);
    if (!hasFocus) await this.click(field);
    await this.#page.keyboard.press('ControlOrMeta+a');
    await this.#page.keyboard.type(text);
  }

  /** Draws over part of a thing from left to right, as parts of its width: one press. */
  async drag(thing: Locator, from: number, to: number): Promise<void> {
    this.#clicks += 1;
    await thing.first().scrollIntoViewIfNeeded();
    const box = await thing.first().boundingBox();
    if (box === null) throw new Error('It is not to be seen.');
    const { mouse } = this.#page;
    const y = box.y + box.height / 2;
    await mouse.move(box.x + box.width * from, y);
    await mouse.down();
    await mouse.move(box.x + box.width * to, y, { steps: 10 });
    await mouse.up();
  }

  press(key: string): Promise<void> {
    return this.#page.keyboard.press(key);
  }

  /** Tells what it took until now. */
  effort(): Effort {
    return { clicks: this.#clicks, ms: Math.round(performance.now() - this.#began) };
  }
}
