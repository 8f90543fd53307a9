import { signal } from '@preact/signals';
import { withToast, type Toast } from '../model/toast-list.ts';

/** How long a success message stays. Errors stay until they are closed. */
const SHOWN_MS = 5_000;

const shown = signal<readonly Toast[]>([]);
let latest = 0;

/** Shows a success message for a moment. */
export function say(text: string): void {
  const id = add(text, false);
  setTimeout(() => close(id), SHOWN_MS);
}

/** Shows an error until it is closed. */
export function complain(text: string): void {
  add(text, true);
}

/** Success and error messages, announced by screen readers. */
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.value.map(({ id, text, isBad }) => (
        <p key={id} class={isBad ? 'toast bad' : 'toast'}>
          {text}
          <button type="button" class="quiet" aria-label="Close" onClick={() => close(id)}>
            ×
          </button>
        </p>
      ))}
    </div>
  );
}

function add(text: string, isBad: boolean): number {
  latest += 1;
  shown.value = withToast(shown.value, { id: latest, text, isBad });
  return latest;
}

function close(id: number): void {
  shown.value = shown.value.filter((toast) => toast.id !== id);
}
