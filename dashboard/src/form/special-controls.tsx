import { LANES } from '../../../src/core/words/ticket.ts';
import {
  laneRuleRows,
  laneRulesFrom,
  numberFrom,
  spillFrom,
  spillRows,
  textOf,
} from '../model/field-text.ts';
import type { ControlProps } from './simple-controls.tsx';
import { RowsControl } from './rows-control.tsx';
import { useTyped } from './use-typed.ts';

type ControlParts = Readonly<Record<string, unknown>>;

function isParts(value: unknown): value is ControlParts {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Lanes by model. The first matching rule applies. */
export function LaneRulesControl({ value, onChange }: ControlProps) {
  return (
    <RowsControl
      noun="rule"
      columns={[
        { label: 'Models of rule' },
        { label: 'Lane of rule', options: LANES, isShort: true },
      ]}
      value={value}
      format={laneRuleRows}
      parse={laneRulesFrom}
      onChange={onChange}
    />
  );
}

const HEADER = 'header:';

/** Chooses how a group is shared: by caller or by a header, and optionally by agent within each tenant. */
export function FairnessControl({ value, attributes, onChange }: ControlProps) {
  const [tenant = 'caller', agent] = Array.isArray(value) ? value.map(textOf) : [];
  const isHeader = tenant !== 'caller';
  const set = (by: string, withAgents: boolean): void =>
    onChange(withAgents ? [by, 'agent'] : [by]);
  const withAgents = agent !== undefined;
  return (
    <>
      <select
        {...attributes}
        aria-label="Shared by"
        value={isHeader ? 'header' : 'caller'}
        onChange={(event) =>
          set(event.currentTarget.value === 'caller' ? 'caller' : HEADER, withAgents)
        }
      >
        <option value="caller">caller</option>
        <option value="header">a header</option>
      </select>
      <div class="inner-fields">
        {isHeader && (
          <label>
            Header
            <input
              type="text"
              value={tenant.startsWith(HEADER) ? tenant.slice(HEADER.length) : tenant}
              onInput={(event) => set(HEADER + event.currentTarget.value.trim(), withAgents)}
              placeholder="x-team"
              autocomplete="off"
              spellcheck={false}
            />
          </label>
        )}
        <label class="check">
          <input
            type="checkbox"
            checked={withAgents}
            onChange={(event) => set(tenant, event.currentTarget.checked)}
          />
          Split the share of each tenant among its agents
        </label>
      </div>
    </>
  );
}

function Part(props: {
  readonly label: string;
  readonly value: unknown;
  readonly unit?: string;
  readonly isOptional?: boolean;
  readonly onChange: (value: unknown) => void;
}) {
  const { label, value, unit, isOptional = false } = props;
  const parse = (typed: string): unknown =>
    typed.trim() === '' && isOptional ? undefined : numberFrom(typed);
  const [text, type] = useTyped(value, { format: textOf, parse }, props.onChange);
  return (
    <label>
      {label}
      <span class="control with-unit">
        <input
          value={text}
          inputMode="decimal"
          autocomplete="off"
          onInput={(event) => type(event.currentTarget.value)}
        />
        {unit !== undefined && <span class="unit">{unit}</span>}
      </span>
    </label>
  );
}

export function SaturatedControl({ value, attributes, onChange }: ControlProps) {
  const spill = isParts(value) ? value : null;
  return (
    <>
      <select
        {...attributes}
        aria-label="When full"
        value={spill === null ? textOf(value) : 'spill'}
        onChange={({ currentTarget: { value: chosen } }) =>
          onChange(chosen === 'spill' ? { spill_to: [], after_ms: 0 } : chosen)
        }
      >
        <option value="queue">queue: wait</option>
        <option value="reject">reject: fail immediately</option>
        <option value="spill">spill: use another upstream</option>
      </select>
      {spill !== null && (
        <div class="inner-fields">
          <RowsControl
            noun="upstream"
            columns={[{ label: 'Upstream' }, { label: 'Model at the upstream' }]}
            value={spill['spill_to']}
            format={spillRows}
            parse={spillFrom}
            onChange={(to) => onChange({ ...spill, spill_to: to })}
          />
          <Part
            label="Wait per upstream (except the last)"
            unit="ms"
            value={spill['after_ms']}
            isOptional
            onChange={(after) => onChange({ ...spill, after_ms: after })}
          />
          <Part
            label="Time to first token (except the last)"
            unit="ms"
            value={spill['first_token_ms']}
            isOptional
            onChange={(within) => onChange({ ...spill, first_token_ms: within })}
          />
        </div>
      )}
    </>
  );
}

/** Chooses what happens to calls while the group does not respond. */
export function UnavailableControl({ value, attributes, onChange }: ControlProps) {
  const pass = isParts(value) ? value : null;
  return (
    <>
      <select
        {...attributes}
        aria-label="When unreachable"
        value={pass === null ? 'reject' : 'pass'}
        onChange={({ currentTarget: { value: chosen } }) =>
          onChange(chosen === 'pass' ? { pass_with_limit_each: 2 } : 'reject')
        }
      >
        <option value="reject">reject: refuse calls</option>
        <option value="pass">pass: allow some calls</option>
      </select>
      {pass !== null && (
        <div class="inner-fields">
          <Part
            label="Concurrent calls per Worker isolate"
            value={pass['pass_with_limit_each']}
            onChange={(limit) => onChange({ pass_with_limit_each: limit })}
          />
        </div>
      )}
    </>
  );
}

const PRICES = [
  { name: 'input', label: 'Input', isOptional: false },
  { name: 'output', label: 'Output', isOptional: false },
  { name: 'cache_read', label: 'Cache read', isOptional: true },
  { name: 'cache_write', label: 'Cache write', isOptional: true },
];

/** A price in USD per million tokens. */
export function PriceControl({ value, attributes, onChange }: ControlProps) {
  const price = isParts(value) ? value : null;
  return (
    <>
      <label class="check">
        <input
          {...attributes}
          type="checkbox"
          checked={price !== null}
          onChange={(event) => onChange(event.currentTarget.checked ? {} : null)}
        />
        Set a fallback price
      </label>
      {price !== null && (
        <div class="inner-fields">
          {PRICES.map(({ name, label, isOptional }) => (
            <Part
              key={name}
              label={isOptional ? `${label} (default: input price)` : label}
              value={price[name]}
              isOptional
              onChange={(usd) =>
                onChange(
                  Object.fromEntries(
                    Object.entries({ ...price, [name]: usd }).filter(
                      ([, each]) => each !== undefined,
                    ),
                  ),
                )
              }
            />
          ))}
        </div>
      )}
    </>
  );
}
