// Signs on buttons that have a word beside them.

import { html, svg, type TemplateResult } from 'lit-html'

const paths = {
  search: 'M10.5 4a6.5 6.5 0 1 1 0 13a6.5 6.5 0 1 1 0-13M15.5 15.5L21 21',
  code: 'M3 6h18v12H3zM6.5 10h1M10.5 10h1M14.5 10h3M7 14h10',
  torch: 'M8 3h8v4l-2 3v11h-4V10L8 7zM8 6h8',
  turn: 'M4 11a8 8 0 0 1 14-4l2 2M20 4v5h-5M20 13a8 8 0 0 1-14 4l-2-2M4 20v-5h5',
  undo: 'M9 5L4 10l5 5M4 10h10a6 6 0 0 1 0 12h-3',
  more: 'M4 7h16M4 12h16M4 17h16',
  walkIn: 'M10 4a4 4 0 1 1 0 8a4 4 0 1 1 0-8M3 21c0-4 3-6 7-6s7 2 7 6M19 6v6M16 9h6',
}

export const icon = (name: keyof typeof paths): TemplateResult => html`
  <svg viewBox="0 0 24 24" aria-hidden="true">${svg`<path d=${paths[name]} />`}</svg>`
