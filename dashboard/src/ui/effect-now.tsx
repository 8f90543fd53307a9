import { count } from '../format.ts';
import { consequences, type ChangeOfGroup } from '../model/effect.ts';
import './effect-now.css';

/** Current effect of a change on a group: slots before and after, affected calls, and the last hour. */
export function EffectNow(props: { readonly change: ChangeOfGroup; readonly title: string }) {
  const { change, title } = props;
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      <Slots change={change} />
      <ul class="consequences">
        {consequences(change).map(({ text, tone }) => (
          <li key={text} class={tone}>
            {text}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Slots before and after as two bars on one scale, with the maximum of the last hour. */
function Slots({ change: { now, last_hour } }: { readonly change: ChangeOfGroup }) {
  if (now === null) return null;
  const { from, to } = now.slots;
  const most = last_hour?.in_use_max ?? 0;
  const scale = Math.max(from ?? 0, to ?? 0, most, 1);
  const width = (slots: number | null): string => `${((slots ?? scale) / scale) * 100}%`;
  const gained = now.slots_gained;
  const difference =
    gained === null || gained === 0
      ? null
      : `${count(Math.abs(gained))} ${gained > 0 ? 'gained' : 'lost'}`;
  return (
    <dl class="slots-change">
      {[
        { name: 'Slots now', slots: from, isNew: false },
        { name: 'Slots after', slots: to, isNew: true },
      ].map(({ name, slots, isNew }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <span class="bar" aria-hidden="true">
              <span class={isNew ? 'room new' : 'room'} style={{ width: width(slots) }} />
              {most > 0 && (
                <span
                  class="most"
                  style={{ left: width(most) }}
                  title="Maximum in use in the last hour"
                />
              )}
            </span>
            <span class="figure">
              <strong>{slots === null ? 'unlimited' : count(slots)}</strong>
              {isNew && difference !== null && (
                <span class={gained !== null && gained < 0 ? 'lost' : 'gained'}>{difference}</span>
              )}
            </span>
          </dd>
        </div>
      ))}
    </dl>
  );
}
