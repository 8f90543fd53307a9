import { useId } from 'preact/hooks';
import {
  asLocal,
  HISTORY_RANGES,
  linkOf,
  rangeStartMs,
  widerThan,
  zoneName,
} from '../model/history-range.ts';
import { CopyButton } from './copy-button.tsx';
import { useRange } from './use-range.ts';
import './time-range.css';

/**
 * Chooses the time range of a page, which its link contains.
 *
 * @param defaultId id of the range if the link selects none
 */
export function TimeRange({ defaultId }: { readonly defaultId?: string }) {
  const { range, show, showFrom } = useRange(defaultId);
  const id = useId();
  const now = Date.now();
  const startMs = rangeStartMs(range, now);
  const endMs = range.endMs ?? now;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const fields = new FormData(event.currentTarget);
    const [fromMs, toMs] = [instantIn(fields, 'from'), instantIn(fields, 'to')];
    if (fromMs < toMs) showFrom(fromMs, toMs);
  };
  const wider = (): void => {
    const { lengthMs, endMs: end } = widerThan(range, Date.now());
    if (end !== null) showFrom(end - lengthMs, end);
  };
  return (
    <div class="time-range">
      <div class="ranges" role="group" aria-label="Time range">
        {HISTORY_RANGES.map(({ id: name, name: label }) => (
          <button type="button" aria-pressed={name === range.id} onClick={() => show(name)}>
            {label}
          </button>
        ))}
      </div>
      <form onSubmit={submit} key={`${startMs} ${range.endMs}`}>
        <label for={`${id}-from`}>From</label>
        <input id={`${id}-from`} type="datetime-local" name="from" value={asLocal(startMs)} />
        <label for={`${id}-to`}>To</label>
        <input id={`${id}-to`} type="datetime-local" name="to" value={asLocal(endMs)} />
        <button type="submit">Show</button>
        <button type="button" onClick={wider}>
          Zoom out
        </button>
        <CopyButton text={linkTo(startMs, endMs)} label="Copy link" />
        <small>{zoneName()}</small>
      </form>
    </div>
  );
}

/** Parses an instant in the time zone of the browser. NaN if there is none. */
function instantIn(fields: FormData, name: string): number {
  const value = fields.get(name);
  return typeof value === 'string' ? Date.parse(value) : Number.NaN;
}

/** Builds the link on demand, because the page may have changed other parts of it. */
function linkTo(fromMs: number, toMs: number): () => Promise<string> {
  return async () => {
    const url = new URL(location.href);
    url.searchParams.delete('range');
    for (const [term, value] of Object.entries(linkOf(fromMs, toMs))) {
      url.searchParams.set(term, value);
    }
    return url.href;
  };
}
