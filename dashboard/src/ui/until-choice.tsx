import { useState } from 'preact/hooks';
import { now } from '../feed.ts';
import { zoneName } from '../format.ts';
import { SPANS, typedEnd, type TemporaryChoice } from '../model/temporary.ts';
import './until-choice.css';

const TYPED = 'typed';

/** Chooses how long a change applies before it reverts. Reports null while the typed end is invalid. */
export function UntilChoice(props: {
  readonly id: string;
  /** Label of the choice without an end, such as `permanently`. */
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
      <label for={id}>Duration</label>
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
          ? 'Choose a time in the future, within 31 days.'
          : 'A change with an end reverts automatically, unless someone changes it first.'}
      </p>
    </div>
  );
}
