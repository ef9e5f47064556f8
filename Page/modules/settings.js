// Settings of the page that the browser keeps, such as the columns of the list.

/** The stored value of `name`, or `otherwise` if there is none or storage is disabled. */
export function stored(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(`apns-mock.${name}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Stores a value. Returns whether it is: without storage, it lasts until the page is reloaded. */
export function store(name, value) {
  try {
    localStorage.setItem(`apns-mock.${name}`, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}
