import { signal } from '@preact/signals';

/** Why the page rests: it is hidden, or had no input for a long time. A resting page sends no requests. */
export type Rest = 'hidden' | 'unused';

/** How long a page stays hidden before it rests. An open feed costs requests. */
const HIDDEN_MS_MAX = 30_000;

/** How long a visible page may have no input before it rests and shows a dialog. */
const UNUSED_MS_MAX = 30 * 60_000;

const SIGNS = ['pointerdown', 'pointermove', 'keydown', 'wheel', 'touchstart'] as const;

/** null while the page is in use. */
export const resting = signal<Rest | null>(null);

let usedAt = Date.now();
let hidden: ReturnType<typeof setTimeout> | undefined;
let unused: ReturnType<typeof setTimeout> | undefined;

/** Starts watching for input and visibility. */
export function watchForRest(): void {
  for (const sign of SIGNS) document.addEventListener(sign, noteUse, { passive: true });
  document.addEventListener('visibilitychange', followVisibility);
  wake();
  followVisibility();
}

export function stopWatching(): void {
  for (const sign of SIGNS) document.removeEventListener(sign, noteUse);
  document.removeEventListener('visibilitychange', followVisibility);
  clearTimeout(hidden);
  clearTimeout(unused);
}

/** Ends the rest, and restarts the timer. */
export function wake(): void {
  noteUse();
  resting.value = null;
  clearTimeout(unused);
  unused = setTimeout(checkUse, UNUSED_MS_MAX);
}

function noteUse(): void {
  usedAt = Date.now();
}

function checkUse(): void {
  const leftMs = usedAt + UNUSED_MS_MAX - Date.now();
  if (leftMs > 0) unused = setTimeout(checkUse, leftMs);
  else resting.value ??= 'unused';
}

function followVisibility(): void {
  clearTimeout(hidden);
  if (document.hidden) hidden = setTimeout(() => (resting.value ??= 'hidden'), HIDDEN_MS_MAX);
  // A page that becomes visible is in use. If it rested for lack of input, the reader has to answer the dialog.
  else if (resting.peek() !== 'unused') wake();
}
