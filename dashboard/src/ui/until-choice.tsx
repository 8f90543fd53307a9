import { useState } from 'preact/hooks';
import { now } from '../feed.ts';
import { zoneName } from '../format.ts';
import { SPANS, typedEnd, type TemporaryChoice } from '../model/temporary.ts';
import './until-choice.css';

const TYPED = 'typed';

/** Choice of how long a change holds, before it goes back by itself. Null is told while what was typed is no end. */
export function UntilChoice(props: {
  readonly id: string;
  /** Words for no end, as in `For good`. */
  readonly unending: string;
  readonly onChange: (lasts: TemporaryChoice | null) => void;
}) {
  const { id, onChange } = props;
  const [choice, setChoice] = useState('');
  const [typed, setTyped] = useState('');
  const type = (text: string): void => {
    setTyped(text);
    const until = typedEnd(text, now.value);
    onChange(until === null ? null : { until });
  };
  const choose = (next: string): void => {
    setChoice(next);
    if (next === TYPED) return type(typed);
    onChange(next === '' ? {} : { for_s: Number(next) });
  };
  const isWrong = typed !== '' && typedEnd(typed, now.value) === null;
  return (
    <div class="until-choice">
      <label for={id}>How long</label>
      <select id={id} value={choice} onChange={(event) => choose(event.currentTarget.value)}>
        <option value="">{props.unending}</option>
        {SPANS.map(({ words, for_s }) => (
          <option key={for_s} value={for_s}>
            {words}
          </option>
        ))}
        <option value={TYPED}>until…</option>
      </select>
      {choice === TYPED && (
        <>
          <label for={`${id}-at`}>Until ({zoneName()})</label>
          <input
            id={`${id}-at`}
            type="datetime-local"
            value={typed}
            aria-invalid={isWrong}
            aria-describedby={`${id}-help`}
            onInput={(event) => type(event.currentTarget.value)}
          />
        </>
      )}
      <p id={`${id}-help`} class="help">
        {isWrong
          ? 'No end that can be: it lies in the future, within 31 days.'
          : 'With an end it goes back by itself, unless somebody changes it meanwhile.'}
      </p>
    </div>
  );
}
