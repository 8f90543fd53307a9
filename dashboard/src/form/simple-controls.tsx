import { duration } from '../format.ts';
import {
  instantFrom,
  listFrom,
  listText,
  localFrom,
  textOf,
  valueFrom,
} from '../model/field-text.ts';
import type { SchemaField } from '../model/schema-fields.ts';
import type { ControlAttributes } from '../ui/field.tsx';
import { useTyped } from './use-typed.ts';

export interface ControlProps {
  readonly field: SchemaField;
  readonly value: unknown;
  readonly attributes: ControlAttributes;
  readonly onChange: (value: unknown) => void;
}

/** A number in the unit of the configuration. Empty input means null if the field is nullable, else the default. */
export function NumberControl({ field, value, attributes, onChange }: ControlProps) {
  const parse = (text: string): unknown => valueFrom(text, field);
  const [text, type] = useTyped(value, { format: textOf, parse }, onChange);
  const isLong = field.unit === 'ms' && typeof value === 'number' && value >= 1_000;
  return (
    <>
      <input
        {...attributes}
        value={text}
        onInput={(event) => type(event.currentTarget.value)}
        inputMode="decimal"
        autocomplete="off"
        placeholder={field.isNullable ? 'none' : textOf(field.fallback)}
      />
      {isLong && <span class="unit meaning">= {duration(value)}</span>}
    </>
  );
}

/** One line of text with optional suggestions. Empty input clears an optional or nullable field. */
export function TextControl({
  field,
  value,
  attributes,
  onChange,
  offers = [],
}: ControlProps & { readonly offers?: readonly string[] | undefined }) {
  const list = `${attributes.id}-offers`;
  const none = field.isOptional ? undefined : field.isNullable ? null : '';
  return (
    <>
      <input
        {...attributes}
        type="text"
        value={textOf(value)}
        onInput={({ currentTarget: { value: text } }) => onChange(text === '' ? none : text)}
        {...(offers.length > 0 && { list })}
        autocomplete="off"
        spellcheck={false}
      />
      {offers.length > 0 && (
        <datalist id={list}>
          {offers.map((word) => (
            <option key={word} value={word} />
          ))}
        </datalist>
      )}
    </>
  );
}

export function SwitchControl({ value, attributes, onChange }: ControlProps) {
  return (
    <input
      {...attributes}
      type="checkbox"
      checked={value === true}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  );
}

export function ChoiceControl({
  field,
  value,
  attributes,
  onChange,
  options,
}: ControlProps & { readonly options: readonly string[] }) {
  return (
    <select
      {...attributes}
      value={textOf(value)}
      onChange={(event) =>
        onChange(event.currentTarget.value === '' ? null : event.currentTarget.value)
      }
    >
      {field.isNullable && <option value="">none</option>}
      {options.map((option) => (
        <option key={option} value={option}>
          {option}
        </option>
      ))}
    </select>
  );
}

/** The name of an existing object, chosen from a list. */
export function OneOfControl({
  value,
  attributes,
  onChange,
  options,
}: ControlProps & { readonly options: readonly string[] }) {
  const chosen = textOf(value);
  return (
    <select
      {...attributes}
      value={chosen}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      {!options.includes(chosen) && <option value={chosen}>{chosen || 'Choose one'}</option>}
      {options.map((option) => (
        <option key={option}>{option}</option>
      ))}
    </select>
  );
}

/** Texts, one per line. Buttons add known values. */
export function ListControl({
  value,
  attributes,
  onChange,
  suggestions,
}: ControlProps & { readonly suggestions: readonly string[] }) {
  const [text, type] = useTyped(value, { format: listText, parse: listFrom }, onChange);
  const given = listFrom(text);
  const left = suggestions.filter((word) => !given.includes(word)).slice(0, SUGGESTIONS_MAX);
  return (
    <>
      <textarea
        {...attributes}
        value={text}
        onInput={(event) => type(event.currentTarget.value)}
        rows={Math.min(12, Math.max(2, text.split('\n').length))}
        spellcheck={false}
        autocomplete="off"
      />
      {left.length > 0 && (
        <div class="suggestions">
          {left.map((word) => (
            <button
              key={word}
              type="button"
              aria-label={`Add ${word}`}
              onClick={() => type([...given, word].join('\n'))}
            >
              + {word}
            </button>
          ))}
        </div>
      )}
    </>
  );
}

/** More suggestions than this are slower to read than to type. */
const SUGGESTIONS_MAX = 8;

/** An instant in the time zone of the reader. */
export function InstantControl({ value, attributes, onChange }: ControlProps) {
  return (
    <input
      {...attributes}
      type="datetime-local"
      value={localFrom(value)}
      onInput={(event) => onChange(instantFrom(event.currentTarget.value))}
    />
  );
}
