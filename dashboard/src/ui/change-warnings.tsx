import type { ChangePreview } from '../model/effect.ts';
import './effect-now.css';

/** Warnings of a previewed change. If a budget would refuse calls without a price, a button counts them as free. */
export function ChangeWarnings(props: {
  readonly preview: Pick<ChangePreview, 'warnings' | 'refuses'>;
  /** The group whose fallback price the change may set: a group, `key:…` or `team:…`. */
  readonly group?: string;
  /** Sets the fallback price of the change to 0 USD. */
  readonly onFree?: () => void;
}) {
  const { warnings, refuses } = props.preview;
  if (warnings.length === 0) return null;
  const isUnpriced = refuses.refused.some(
    ({ reason, group }) => reason === 'price_unknown' && group === props.group,
  );
  return (
    <>
      <ul class="consequences">
        {warnings.map((warning) => (
          <li key={warning} class="bad">
            {warning}
          </li>
        ))}
      </ul>
      {isUnpriced && props.onFree !== undefined && (
        <button type="button" onClick={props.onFree}>
          Count calls without a price as free
        </button>
      )}
    </>
  );
}
