// Short names for what every part asks the document.

export const find = (selector, root = document) => root.querySelector(selector);
export const all = (selector, root = document) => [...root.querySelectorAll(selector)];
export const parsed = (html) => new DOMParser().parseFromString(html, "text/html").body;
