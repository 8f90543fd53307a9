import { signal } from '@preact/signals';

/** Nobody sees the page, or nobody has touched it for long: meanwhile it asks the server for nothing. */
export type Rest = 'hidden' | 'unused';

/** How long nobody sees the page before it rests. What it follows costs for as long as it is followed. */
const HIDDEN_MS_MAX = 30_000;

/** How long nobody touches the page, which is in sight, before it asks whether somebody still looks. */
const UNUSED_MS_MAX = 30 * 60_000;

/** Signs that somebody is there. */
const SIGNS = ['pointerdown', 'pointermove', 'keydown', 'wheel', 'touchstart'] as const;

/** Null: somebody looks, as far as can be told. */
export const resting = signal<Rest | null>(null);

let usedAt = Date.now();
let hidden: ReturnType<typeof setTimeout> | undefined;
let unused: ReturnType<typeof setTimeout> | undefined;

/** Watches from now on whether somebody looks. */
export function watchForRest(): void {
  for (const sign of SIGNS) document.addEventListener(sign, noteUse, { passive: true });
  document.addEventListener('visibilitychange', followVisibility);
  wake();
  followVisibility();
}

/** Stops watching: nobody is signed in. */
export function stopWatching(): void {
  for (const sign of SIGNS) document.removeEventListener(sign, noteUse);
  document.removeEventListener('visibilitychange', followVisibility);
  clearTimeout(hidden);
  clearTimeout(unused);
}

/** Goes on: somebody has said that they look. */
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
  // Who comes back to a page looks at it; whether somebody does who left it in sight has to be asked.
  else if (resting.peek() !== 'unused') wake();
}
