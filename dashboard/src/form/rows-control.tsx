import type { ComponentChildren } from 'preact';
import { repeatedNames } from '../model/field-text.ts';
import { useTyped } from './use-typed.ts';

interface RowColumn {
  readonly label: string;
  readonly isShort?: boolean;
  /** Values to choose from. A new row starts with the first. */
  readonly options?: readonly string[];
}

interface RowsProps {
  readonly value: unknown;
  readonly columns: readonly RowColumn[];
  readonly format: (value: unknown) => string[][];
  readonly parse: (rows: string[][]) => unknown;
  readonly onChange: (value: unknown) => void;
  /** Noun for one row, such as `weight`. */
  readonly noun: string;
  /** Whether the first column is a name that must be unique. */
  readonly isNamed?: boolean;
  readonly children?: ComponentChildren;
}

/** A list in which each entry is a row of several labelled inputs. */
export function RowsControl(props: RowsProps) {
  const { columns, format, parse, noun } = props;
  const [rows, type] = useTyped(props.value, { format, parse }, props.onChange);
  const setCell = (at: number, column: number, text: string): void =>
    type(rows.map((row, each) => (each === at ? row.with(column, text) : row)));
  const repeated = props.isNamed === true ? repeatedNames(rows) : [];
  return (
    <div class="rows">
      {rows.map((row, at) => (
        <div class="row" key={at} role="group" aria-label={`${noun} ${at + 1}`}>
          {columns.map((column, index) => (
            <Cell
              key={column.label}
              column={column}
              name={`${column.label} ${at + 1}`}
              text={row[index] ?? ''}
              onInput={(text) => setCell(at, index, text)}
            />
          ))}
          <button
            type="button"
            class="quiet"
            aria-label={`Remove ${noun} ${at + 1}`}
            onClick={() => type(rows.filter((_row, each) => each !== at))}
          >
            ×
          </button>
        </div>
      ))}
      <button
        type="button"
        class="add"
        onClick={() => type([...rows, columns.map(({ options }) => options?.[0] ?? '')])}
      >
        Add {noun}
      </button>
      {repeated.length > 0 && (
        <p class="help">
          Duplicate names: {repeated.join(', ')}. Only the last row of each is used.
        </p>
      )}
    </div>
  );
}

function Cell(props: {
  readonly column: RowColumn;
  readonly name: string;
  readonly text: string;
  readonly onInput: (text: string) => void;
}) {
  const { column, name, text } = props;
  const attributes = {
    'aria-label': name,
    value: text,
    ...(column.isShort === true ? { class: 'short' } : {}),
  };
  if (column.options !== undefined) {
    return (
      <select {...attributes} onChange={(event) => props.onInput(event.currentTarget.value)}>
        {column.options.map((option) => (
          <option key={option}>{option}</option>
        ))}
      </select>
    );
  }
  return (
    <input
      {...attributes}
      type="text"
      onInput={(event) => props.onInput(event.currentTarget.value)}
      placeholder={column.label}
      autocomplete="off"
      spellcheck={false}
    />
  );
}
